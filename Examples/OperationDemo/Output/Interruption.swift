import Dispatch
import Foundation

/// Control-C as a request to stop, the first time. The second time the process exits at once.
final class Interruption {
    private let source: any DispatchSourceSignal

    /// - Parameter handler: Called once, on a queue of its own.
    init(handler: @escaping @Sendable () -> Void) {
        // The source is told of signals that are ignored, too. Otherwise the first would end the process.
        signal(SIGINT, SIG_IGN)
        let queue = DispatchQueue(label: "OperationDemo.Interruption")
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: queue)
        let count = Count()
        source.setEventHandler {
            count.value += 1
            if count.value > 1 { ExitStatus.interrupted.exit() }
            handler()
        }
        source.activate()
    }

    /// From here on Control-C ends the process, as it does without an interruption.
    func end() {
        source.cancel()
        signal(SIGINT, SIG_DFL)
    }

    /// Used on the queue of the source alone.
    private final class Count: @unchecked Sendable {
        var value = 0
    }
}
