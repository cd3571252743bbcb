import Dispatch
package import Foundation
import Testing

/// The ways in which an operation gets started.
package enum Start: CaseIterable, Sendable {
    case byHand, onBusyQueue, onSuspendedQueue

    /// Starts an operation after something else, and waits until both it and its queue are through with it. What is
    /// first happens once the operation is where it is going to be started from, and before it is.
    package func callAsFunction(_ operation: Operation, after first: @escaping @Sendable () -> Void = {}) async {
        await onThread {
            let queue = OperationQueue()
            switch self {
            case .byHand:
                first()
                operation.start()
            case .onBusyQueue:
                let gate = Gate()
                queue.maxConcurrentOperationCount = 1
                queue.addOperation { gate.pass() }
                queue.addOperation(operation)
                first()
                gate.open()
            case .onSuspendedQueue:
                queue.isSuspended = true
                queue.addOperation(operation)
                first()
                queue.isSuspended = false
            }
            operation.waitUntilFinished()
            queue.waitUntilAllOperationsAreFinished()
        }
    }
}

/// Asks another thread something, and waits for the answer: proves that nothing it needs is held by the calling thread.
@available(*, noasync)
package func answersOnAnotherThread(_ question: @escaping @Sendable () -> Void) -> Bool {
    let answered = DispatchSemaphore(value: 0)
    Thread {
        question()
        answered.signal()
    }.start()
    return answered.wait(timeout: .now() + hangTimeout) == .success
}
