import Foundation

/// The loop that one would write by hand without the library: a completion for each item, which may come immediately or
/// later on any thread; the next item after it; the errors in an array, behind a lock. As long as completions come at
/// once, the stack does not grow.
final class GuardedLoop: @unchecked Sendable {
    /// What is done with an item. It is called through a value, as the method of a type that is not known would be.
    typealias Work = @Sendable (_ item: Int, _ completion: @escaping @Sendable ((any Error)?) -> Void) -> Void

    private let items: [Int]
    private let work: Work
    private let completion: @Sendable ([(any Error)?]) -> Void
    private let lock = NSLock()
    private var errors: [(any Error)?]
    // Of the item in flight: which of the call and the completion came first.
    private var hasReturned = false
    private var hasCompleted = false

    init(_ items: [Int], work: @escaping Work, completion: @escaping @Sendable ([(any Error)?]) -> Void) {
        self.items = items
        self.work = work
        self.completion = completion
        errors = Array(repeating: nil, count: items.count)
    }

    /// Begins the items from one of them on.
    func run(from start: Int = 0) {
        for index in start..<items.count {
            work(items[index]) { self.ended(index, $0) }
            let goesOn = lock.withLock {
                defer { (hasReturned, hasCompleted) = (!hasCompleted, false) }
                return hasCompleted
            }
            if !goesOn { return }
        }
        completion(lock.withLock { errors })
    }

    private func ended(_ index: Int, _ error: (any Error)?) {
        let wasLeft = lock.withLock {
            errors[index] = error
            defer { (hasReturned, hasCompleted) = (false, !hasReturned) }
            return hasReturned
        }
        if wasLeft { run(from: index + 1) }
    }
}
