import Dispatch
import Foundation
import OperationKit

// The same work for every item of a collection.
extension Case {
    static let items = Case(
        id: "items",
        summary: "a collection whose items complete immediately",
        baseline: "a loop with a completion for each item and a lock for the errors; closures with a DispatchGroup",
        timed: "the call that performs the items, until its completion is called"
    ) { scale in
        let items = Array(0..<scale.many)
        let size = grouped(scale.many)
        let sequential = Side("SequentialItemOperation, \(size)", units: items.count) {
            performing(SequentialItems(), items)
        }
        let loop = Side("guarded loop, \(size)", units: items.count) { looping(items) }
        let plain = Side("plain loop, \(size)", units: items.count) { loopingWithoutLock(items) }
        let parallel = Side("ParallelItemOperation, \(size)", units: items.count) { performing(Parallel(), items) }
        let group = Side("DispatchGroup, \(size)", units: items.count) { grouping(items) }
        return [
            Experiment(
                quantity: .nanoseconds, sides: [sequential, loop, plain],
                comparisons: [
                    Comparison(
                        what: "\(size) items, sequential, to a guarded loop", ours: sequential.name,
                        baseline: loop.name, goal: 1.5),
                    Comparison(
                        what: "the same, to a loop without lock", ours: sequential.name, baseline: plain.name),
                ]),
            Experiment("\(size) items, parallel", ours: parallel, baseline: group, goal: 1),
        ]
    }

    static let sequence = Case(
        id: "sequence",
        summary: "a sequence whose items complete immediately, which is read one item at a time",
        baseline: "the same items as a collection; for tasks of a microsecond, a loop with await",
        timed: "the call that performs the items, until it returns or its completion is called"
    ) { scale in
        let items = Array(0..<scale.count)
        let size = grouped(scale.count)
        let sequence = Side("performOperation(onEach:), \(size)", units: items.count) {
            {
                inTask { _ = try? await SequentialItems().performOperation(onEach: 0..<items.count) }
                return items
            }
        }
        let collection = Side("performOperation(on:), \(size)", units: items.count) {
            performing(SequentialItems(), items)
        }
        let rounds = Busy.rounds(microseconds: 1)
        let tasks = Side("performOperation(onEach:) with tasks, \(size)", units: items.count) {
            {
                inTask { _ = try? await Tasks(rounds: rounds).performOperation(onEach: 0..<items.count) }
                return items
            }
        }
        let loop = Side("loop with await, \(size)", units: items.count) {
            {
                inTask {
                    let tasks = Tasks(rounds: rounds)
                    for item in 0..<items.count { try? await tasks.performOperation(onItem: item) }
                }
                return items
            }
        }
        return [
            Experiment("\(size) items of a sequence", ours: sequence, baseline: collection, goal: 10),
            Experiment("\(size) tasks of 1 µs", ours: tasks, baseline: loop, goal: 1.5),
        ]
    }
}

/// Items that complete immediately, one after the other.
final class SequentialItems: SequentialItemOperation {
    func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
}

/// Items that take a while in a task, one after the other.
private final class Tasks: AsyncItemOperation, SequentialItemOperation {
    private let rounds: Int

    init(rounds: Int) { self.rounds = rounds }

    func performOperation(onItem item: Int) async throws { Busy.compute(rounds) }
}

private final class Parallel: ParallelItemOperation {
    func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { completion(nil) }
}

private func performing(_ operation: some CollectionOperation<Int>, _ items: [Int]) -> Trial {
    {
        let end = End()
        operation.performOperation(on: items) { _ in end.come() }
        end.wait()
        return operation
    }
}

private func looping(_ items: [Int]) -> Trial {
    {
        let end = End()
        let loop = GuardedLoop(items, work: { _, completion in completion(nil) }) { _ in end.come() }
        DispatchQueue.global().async { loop.run() }
        end.wait()
        return loop
    }
}

/// A loop that relies on completions that come immediately, on its own thread: no lock, no next item that waits.
private func loopingWithoutLock(_ items: [Int]) -> Trial {
    {
        let end = End()
        let work: @Sendable (Int, (_ error: (any Error)?) -> Void) -> Void = { _, completion in completion(nil) }
        DispatchQueue.global().async {
            var errors: [(any Error)?] = Array(repeating: nil, count: items.count)
            for index in items.indices { work(items[index]) { errors[index] = $0 } }
            end.come()
        }
        end.wait()
        return items
    }
}

private func grouping(_ items: [Int]) -> Trial {
    {
        let end = End()
        let errors = Errors(count: items.count)
        let group = DispatchGroup()
        let queue = DispatchQueue(label: "OperationBenchmark", attributes: .concurrent)
        let work: GuardedLoop.Work = { _, completion in completion(nil) }
        for index in items.indices {
            group.enter()
            queue.async {
                work(items[index]) { error in
                    errors.set(index, error)
                    group.leave()
                }
            }
        }
        group.notify(queue: queue) { end.come() }
        end.wait()
        return errors
    }
}

/// An array of errors behind a lock.
private final class Errors: @unchecked Sendable {
    private let lock = NSLock()
    private var errors: [(any Error)?]

    init(count: Int) { errors = Array(repeating: nil, count: count) }

    func set(_ index: Int, _ error: (any Error)?) {
        lock.withLock { errors[index] = error }
    }
}
