import Dispatch
import Foundation
import OperationKit

/// The least that an operation of the library can do.
final class Leaf: AsyncOperation, @unchecked Sendable {
    override func main() { finish() }

    static func make(_ count: Int) -> [Operation] {
        (0..<count).map { _ in Leaf() }
    }

    /// Leaves of which each depends on the one before it.
    static func chain(_ count: Int) -> [Operation] {
        make(count).chained()
    }
}

/// What one writes by hand: the least that an asynchronous operation needs.
final class Bare: Operation, @unchecked Sendable {
    private let lock = NSRecursiveLock()
    private var (isAtWork, isOver) = (false, false)

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { lock.withLock { isAtWork } }
    override var isFinished: Bool { lock.withLock { isOver } }

    override func start() {
        willChangeValue(forKey: "isExecuting")
        lock.withLock { isAtWork = true }
        didChangeValue(forKey: "isExecuting")
        main()
    }

    override func main() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        lock.withLock { (isAtWork, isOver) = (false, true) }
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}

extension [Operation] {
    /// Makes each operation depend on the one before it.
    func chained() -> [Operation] {
        for (operation, next) in zip(self, dropFirst()) { next.addDependency(operation) }
        return self
    }
}

/// A macro whose steps each add 1, and the steps: the macro releases them when it ends.
func makeMacro(ofSteps count: Int) -> (macro: MacroOperation<Int, Int>, steps: [Operation]) {
    let steps = (0..<count).map { _ in IOBlockOperation<Int, Int> { $0 + 1 } }
    let macro = steps.dropFirst().reduce(MacroOperation(steps[0])) { $0.then($1) }
    macro.input = 0
    return (macro, steps)
}

/// An operation that finishes on a thread other than its own.
final class RemoteLeaf: AsyncOperation, @unchecked Sendable {
    override func main() {
        DispatchQueue.global().async { self.finish() }
    }

    static func make(_ count: Int) -> [Operation] {
        (0..<count).map { _ in RemoteLeaf() }
    }
}

extension Side {
    /// A compound that is created with children that are there, and runs to its end.
    static func compound(
        _ name: String, _ count: Int, width: Int, least: Int = 0, of make: @escaping (Int) -> [Operation]
    ) -> Side {
        Side("\(name), \(grouped(count))", units: count, least: least) {
            let children = make(count)
            return {
                let end = End()
                let compound = CompoundOperation(operations: children, maxConcurrentOperationCount: width)
                compound.asyncCompletionBlock = { _ in end.come() }
                compound.start()
                end.wait()
                return compound
            }
        }
    }

    /// A stock queue to which operations that are there are added, and which runs them to their end.
    static func queue(
        _ name: String, _ count: Int, width: Int, least: Int = 0, of make: @escaping (Int) -> [Operation]
    ) -> Side {
        Side("\(name), \(grouped(count))", units: count, least: least) {
            let operations = make(count)
            return {
                let queue = OperationQueue()
                queue.maxConcurrentOperationCount = width
                queue.addOperations(operations, waitUntilFinished: false)
                queue.waitForAll()
                return queue
            }
        }
    }
}

extension OperationQueue {
    /// Waits for the operations of the queue, without a wait for every single one: a last operation tells when the others
    /// have begun, and then few are left.
    func waitForAll() {
        let end = End()
        addOperation { end.come() }
        end.wait()
        waitUntilAllOperationsAreFinished()
    }
}
