import Foundation

/// The progress of one operation, created when somebody asks for it.
///
/// Foundation's own tree of progresses is not used between operations: on Linux it has no lock, its fractions overflow,
/// and on all platforms it goes back when work is added. A composite computes its fraction itself and publishes it here.
/// What is published never goes back, and is set by one thread at a time without a lock held, because on Apple
/// platforms observers are called.
final class OperationProgress: Progress, @unchecked Sendable {
    /// Divisible by all small numbers, so that the fractions of small weights come out exactly.
    private static let units: Int64 = 23_279_256_000

    private weak var operation: AsyncOperation?
    private let lock = NSLock()
    private var wanted: Int64 = 0
    private var isPublishing = false
    private var isComplete = false

    init(of operation: AsyncOperation, isComposite: Bool) {
        super.init(parent: nil, userInfo: nil)
        super.totalUnitCount = isComposite ? OperationProgress.units : 1
        self.operation = operation
        #if canImport(ObjectiveC)
        // There the cancellation of a parent need not come through cancel().
        cancellationHandler = { [weak operation] in operation?.cancel() }
        #endif
    }

    override var totalUnitCount: Int64 {
        get { super.totalUnitCount }
        // None at all is as good as unknown, as long as the work goes on: Foundation divides by it on Linux.
        set { change { super.totalUnitCount = newValue == 0 ? -1 : newValue } }
    }

    override var completedUnitCount: Int64 {
        get { super.completedUnitCount }
        set { change { super.completedUnitCount = newValue } }
    }

    override func cancel() {
        super.cancel()
        operation?.cancel()
    }

    /// The work has changed the units of a leaf. After its success they stay.
    private func change(_ body: () -> Void) {
        if lock.withLock({ isComplete }) { return }
        body()
        operation?.progressed(to: fractionCompleted)
    }

    /// A composite has come so far.
    func publish(_ fraction: Double) {
        var units = Int64((fraction * Double(OperationProgress.units)).rounded())
        let isMine = lock.withLock {
            guard units > wanted else { return false }
            wanted = units
            defer { isPublishing = true }
            return !isPublishing
        }
        guard isMine else { return }
        var isDone = false
        while !isDone {
            super.completedUnitCount = units
            isDone = lock.withLock {
                isPublishing = units != wanted
                units = wanted
                return !isPublishing
            }
        }
    }

    /// The operation has succeeded.
    func complete(isComposite: Bool) {
        if isComposite { return publish(1) }
        lock.withLock { isComplete = true }
        if super.totalUnitCount <= 0 { super.totalUnitCount = 1 }
        super.completedUnitCount = super.totalUnitCount
    }
}
