import Dispatch
import Foundation

/// Control-C as a request to stop, the first time. The second time the process exits immediately.
final class Interruption {
    private let source: any DispatchSourceSignal
    private let queue = DispatchQueue(label: "OperationDemo.Interruption")

    /// - Parameter handler: Called once, on a queue of its own.
    init(handler: @escaping @Sendable () -> Void) {
        let count = Count()
        source = DispatchSource.handle(SIGINT, on: queue) {
            count.value += 1
            if count.value > 1 { ExitStatus.interrupted.exit() }
            handler()
        }
    }

    /// From here on Control-C does nothing, and the handler is not running: what follows is not left half done.
    func ignore() {
        source.cancel()
        queue.sync {}
    }

    /// From here on Control-C ends the process, as it does without an interruption.
    func end() {
        ignore()
        signal(SIGINT, SIG_DFL)
    }

    /// Used on the queue of the source alone.
    private final class Count: @unchecked Sendable {
        var value = 0
    }
}

/// Signals that are handled on a queue instead of ending or stopping the process.
final class SignalHandlers {
    private let queue: DispatchQueue
    private var sources: [any DispatchSourceSignal] = []

    init(queue: DispatchQueue) {
        self.queue = queue
    }

    deinit {
        for source in sources { source.cancel() }
    }

    func handle(_ number: Int32, _ handler: @escaping @Sendable () -> Void) {
        sources.append(DispatchSource.handle(number, on: queue, handler))
    }
}

extension DispatchSource {
    /// Calls the handler for each signal that comes from now on.
    fileprivate static func handle(
        _ number: Int32, on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) -> any DispatchSourceSignal {
        // The source is told of signals that are ignored, too. Otherwise the first would end the process.
        signal(number, SIG_IGN)
        let source = makeSignalSource(signal: number, queue: queue)
        source.setEventHandler(handler: handler)
        // A source is registered some time after its activation. What came before that would be lost.
        let registration = DispatchSemaphore(value: 0)
        source.setRegistrationHandler { registration.signal() }
        source.activate()
        registration.wait()
        return source
    }
}
