public import Foundation

extension OperationQueue {
    /// Returns a queue that runs one operation at a time, in the order of their priority and addition.
    ///
    /// An asynchronous operation takes its turn until it is finished, not only until its `main()` returns.
    ///
    /// - Parameter name: The name of the queue, for debugging.
    /// - Returns: A new queue.
    public static func serial(name: String) -> OperationQueue {
        let queue = OperationQueue()
        queue.name = name
        queue.maxConcurrentOperationCount = 1
        return queue
    }
}
