import Dispatch

extension DispatchQueue {
    /// A new queue, for what has to be done soon although operations block all threads of the global queues. Those have no
    /// more threads than a limit; a serial queue of its own gets another one.
    static func unoccupied() -> DispatchQueue {
        DispatchQueue(label: "OperationKit.unoccupied", qos: .userInitiated)
    }
}
