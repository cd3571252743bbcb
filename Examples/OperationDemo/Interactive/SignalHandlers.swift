import Dispatch
import Foundation

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
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
        source.setEventHandler(handler: handler)
        source.activate()
        sources.append(source)
    }
}
