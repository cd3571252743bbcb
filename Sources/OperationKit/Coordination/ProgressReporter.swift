import Foundation

/// Keeps a `Progress` in step with a run, from any thread and without holding a lock meanwhile.
///
/// One thread at a time writes, the latest numbers each time; whoever comes meanwhile leaves the numbers to it. So the
/// progress never goes back, although units end on many threads at once.
final class ProgressReporter: @unchecked Sendable {
    typealias Outcome = @Sendable (_ isCancelled: Bool, _ reason: (any Error)?) -> Lifecycle.Outcome

    let progress: Progress
    private let lock = NSLock()
    private var ended = 0
    private var total: Int?
    private var isStale = false
    private var isWriting = false
    private var atEnd: (@Sendable () -> Void)?

    init(cancellation: @escaping @Sendable () -> Void) {
        // Not a part of whatever progress is current on this thread.
        progress = Progress(parent: nil, userInfo: nil)
        progress.totalUnitCount = -1
        progress.cancellationHandler = cancellation
    }

    /// Has the progress follow a count, whose total is `nil` as long as it is not known.
    ///
    /// - Parameter count: Called with the lock held, so that no thread reports an older count after a newer one.
    func report(_ count: () -> (ended: Int, total: Int?)) {
        write {
            let (ended, total) = count()
            if ended <= self.ended && total == self.total { return }
            (self.ended, self.total) = (ended, total)
            isStale = true
        }
    }

    /// Does something once the progress is up to date.
    func end(_ body: @escaping @Sendable () -> Void) {
        write { atEnd = body }
    }

    private func write(_ change: () -> Void) {
        let isMine = lock.withLock {
            change()
            guard !isWriting, isStale || atEnd != nil else { return false }
            isWriting = true
            return true
        }
        guard isMine else { return }
        while true {
            let (numbers, body) = lock.withLock { () -> ((Int, Int?)?, (@Sendable () -> Void)?) in
                if isStale {
                    isStale = false
                    return ((ended, total), nil)
                }
                // What is done at the end may have the last numbers reported.
                isWriting = false
                defer { atEnd = nil }
                return (nil, atEnd)
            }
            guard let (ended, total) = numbers else {
                body?()
                return
            }
            progress.totalUnitCount = Int64(total ?? -1)
            progress.completedUnitCount = Int64(ended)
        }
    }
}
