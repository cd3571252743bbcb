import Dispatch

extension DispatchQueue {
    /// Makes a queue for what has to be done soon although operations block all threads of the global queues. Those
    /// have no more threads than a limit; a serial queue of its own gets another one.
    static func makeDedicated(qos: DispatchQoS = .userInitiated) -> DispatchQueue {
        DispatchQueue(label: "OperationKit.dedicated", qos: qos)
    }
}
