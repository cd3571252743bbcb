import Foundation

/// The operation that a progress belongs to.
protocol ProgressOwner: AnyObject, Sendable {
    /// Whether its progress is computed, and not set.
    var isComposite: Bool { get }

    /// Called when the progress is cancelled, on the thread that cancels it.
    func cancel()

    /// Called when the units of a leaf have changed, on the thread that changed them. Nothing is locked.
    func unitsChanged(to fraction: Double)

    /// The completed weight of the children, and the total, of at least one unit. `nil` for a leaf, and where children have no
    /// weights.
    var weightedUnits: OperationProgress.Units? { get }

    /// How many children have finished, in words. `nil` for a leaf.
    var progressDescription: String? { get }
}

/// The progress of one operation, created when it is asked for.
///
/// Foundation's own tree of progresses is not used between operations: on Linux it has no lock, its fractions overflow,
/// and on all platforms it goes back when work is added. A composite computes its fraction itself and publishes it here.
/// What is published never goes back.
///
/// A change reaches every progress above, and callers may put those of several operations below one. So on Linux, one
/// lock serializes the changes of all operations; Foundation calls nothing from within a change there. On Apple platforms
/// it calls observers, and has locks of its own: nothing is locked there while it is called.
final class OperationProgress: Progress, @unchecked Sendable {
    /// The total of a composite whose fraction comes from weights. Divisible by all small numbers, so that the
    /// fractions of small weights are exact.
    static let fineUnitCount: Int64 = 23_279_256_000

    struct Units: Equatable {
        var completed: Int64
        var total: Int64
    }

    /// A progress that the caller has put below this one, with its share.
    ///
    /// The link is a progress between the two: a progress cannot be removed from its parent, but a link that nothing
    /// else holds can be released.
    private typealias Part = (link: Progress, child: WeakReference<Progress>, units: Int64)

    private weak var owner: (any ProgressOwner)?
    private var isComplete = false
    /// What a composite with weights shows once it has ended.
    private var finalUnitCount: Int64?
    private var parts: [Part] = []
    /// The number of parts at which those that have finished are removed, so that adding costs the same on average.
    private var partLimit = 8

    #if canImport(ObjectiveC)
    private let lock = RecursiveLock()
    private var writer: CoalescingWriter<Units>
    private var handler: (@Sendable () -> Void)?
    #else
    /// Recursive, because Foundation may release the last reference to a progress above within a change.
    private static let tree = RecursiveLock()
    private var lock: RecursiveLock { OperationProgress.tree }
    /// What is shown while the total is not known. Foundation's fractions would be wrong from then on, so what it computes with stays
    /// as it is.
    private var vagueUnits: Units?
    #endif

    /// Creates the progress of an operation. The total is -1 as long as it is not known.
    init(of owner: some ProgressOwner, unitCount: Int64) {
        #if canImport(ObjectiveC)
        writer = CoalescingWriter(Units(completed: 0, total: unitCount))
        #endif
        super.init(parent: nil, userInfo: nil)
        super.totalUnitCount = unitCount
        self.owner = owner
        #if canImport(ObjectiveC)
        cancellationHandler = nil
        #else
        isCancellable = true
        #endif
    }

    // The fraction of a composite with weights is finer than its weights are, so what Foundation computes with is not what
    // is shown.
    private var shownUnits: Units? {
        lock.withLock { finalUnitCount.map { Units(completed: $0, total: $0) } ?? vagueUnits } ?? weightedUnits
    }

    private var weightedUnits: Units? { owner?.weightedUnits }

    override var totalUnitCount: Int64 {
        get { shownUnits?.total ?? super.totalUnitCount }
        // A total of 0 counts as unknown as long as the work goes on: Foundation divides by it on Linux.
        set { if owner?.isComposite != true { change { set(total: newValue == 0 ? -1 : newValue) } } }
    }

    override var completedUnitCount: Int64 {
        get { shownUnits?.completed ?? super.completedUnitCount }
        set { if owner?.isComposite != true { change { set(completed: newValue) } } }
    }

    #if canImport(ObjectiveC)
    private var vagueUnits: Units? { nil }
    private func set(total: Int64) { super.totalUnitCount = total }
    private func set(completed: Int64) { super.completedUnitCount = completed }
    #else
    private func set(total: Int64) {
        if total < 0 { return vagueUnits = Units(completed: completedUnitCount, total: total) }
        super.totalUnitCount = total
        if let units = vagueUnits.take() { super.completedUnitCount = units.completed }
    }

    private func set(completed: Int64) {
        if vagueUnits == nil { super.completedUnitCount = completed }
        vagueUnits?.completed = completed
    }

    override var isIndeterminate: Bool { lock.withLock { vagueUnits != nil } || super.isIndeterminate }

    // On Apple platforms Foundation makes a text of the units.
    override var localizedDescription: String! { owner?.progressDescription ?? super.localizedDescription }
    #endif

    override func addChild(_ child: Progress, withPendingUnitCount units: Int64) {
        let link = Progress.discreteProgress(totalUnitCount: 1)
        let isOpen = lock.withLock {
            if isComplete { return false }
            if parts.count == partLimit {
                parts.removeAll { $0.link.isFinished }
                partLimit = 2 * parts.count + 8
            }
            parts.append((link, WeakReference(child), units))
            #if !canImport(ObjectiveC)
            super.addChild(link, withPendingUnitCount: units)
            #endif
            return true
        }
        if !isOpen { return }
        #if canImport(ObjectiveC)
        super.addChild(link, withPendingUnitCount: units)
        #endif
        // This cancels the child if the link has been cancelled, so nothing is locked.
        link.addChild(child, withPendingUnitCount: 1)
    }

    #if canImport(ObjectiveC)
    override func cancel() {
        super.cancel()
        owner?.cancel()
    }

    /// The handler of the user, called after the operation was cancelled. It cancels the operation itself, because the
    /// cancellation of a progress above may come here without a call of `cancel()`.
    override var cancellationHandler: (@Sendable () -> Void)? {
        get { lock.withLock { handler } }
        set {
            // Release the old handler after unlocking; its deinitializers may run arbitrary code.
            var previous = newValue
            lock.withLock { swap(&previous, &handler) }
            super.cancellationHandler = { [weak owner] in
                owner?.cancel()
                newValue?()
            }
        }
    }

    /// Changes the units of a leaf, unless they are complete.
    private func change(_ body: () -> Void) {
        if lock.withLock({ isComplete }) { return }
        body()
        // If the progress was completed in between, this change may have taken it back.
        if lock.withLock({ isComplete }) { return fill(max(super.totalUnitCount, 1), []) }
        owner?.unitsChanged(to: fractionCompleted)
    }

    /// Publishes how far a composite has come.
    ///
    /// - Parameters:
    ///   - fraction: The part of the units that is completed.
    ///   - total: The number of units, -1 as long as it is not known.
    func publish(_ fraction: Double, of total: Int64) {
        var next = lock.withLock { () -> Units? in
            let units = Units(fraction, of: total)
            return !isComplete && units.replaces(writer.latest) ? writer.changed(to: units) : nil
        }
        while let units = next {
            write(units)
            next = lock.withLock { writer.wrote(units) }
        }
    }

    /// Completes the progress, because the operation has its outcome. A thread that is about to publish less publishes this
    /// once more.
    ///
    /// - Parameter unitCount: The total of a composite. A leaf has set its own.
    func complete(unitCount: Int64?) {
        let total = max(unitCount ?? super.totalUnitCount, 1)
        let shown = weightedUnits?.total
        let parts = lock.withLock {
            isComplete = true
            finalUnitCount = shown
            // No later write: this one need not be reported as written.
            _ = writer.changed(to: Units(completed: total, total: total))
            return exchange(&self.parts, with: [])
        }
        fill(total, parts)
    }
    #else
    /// What Foundation does, but for its way through children that others may complete at the same time.
    override func cancel() {
        isCancelled = true
        if let cancellationHandler { DispatchQueue.global().async(execute: cancellationHandler) }
        for part in lock.withLock({ parts.filter { !$0.link.isFinished } }) { part.child.object?.cancel() }
        owner?.cancel()
    }

    /// Changes the units of a leaf, unless they are complete.
    private func change(_ body: () -> Void) {
        let fraction = lock.withLock { () -> Double? in
            if isComplete { return nil }
            body()
            return fractionCompleted
        }
        if let fraction { owner?.unitsChanged(to: fraction) }
    }

    /// Publishes how far a composite has come.
    ///
    /// - Parameters:
    ///   - fraction: The part of the units that is completed.
    ///   - total: The number of units, -1 as long as it is not known.
    func publish(_ fraction: Double, of total: Int64) {
        let units = Units(fraction, of: total)
        lock.withLock {
            let current = Units(completed: super.completedUnitCount, total: super.totalUnitCount)
            if isComplete || !units.replaces(current) { return }
            write(units)
        }
    }

    /// Completes the progress, because the operation has its outcome. From here on nothing changes it.
    ///
    /// - Parameter unitCount: The total of a composite. A leaf has set its own.
    func complete(unitCount: Int64?) {
        let shown = weightedUnits?.total
        // Release the parts after unlocking; their deinitializers may run arbitrary code.
        _ = lock.withLock {
            isComplete = true
            finalUnitCount = shown
            let total = vagueUnits.take() == nil ? super.totalUnitCount : 1
            fill(max(unitCount ?? total, 1), self.parts)
            return exchange(&self.parts, with: [])
        }
    }
    #endif

    /// Sets all of the units as completed, and completes the links of what is below and not complete.
    ///
    /// The units apart from these parts come first. So the last part completes the progress, and does so exactly: a
    /// progress above counts what is below it whenever it hears that this is complete.
    private func fill(_ total: Int64, _ parts: [Part]) {
        let open = parts.filter { !$0.link.isFinished }
        setCompleted(total &- open.reduce(0) { $0 &+ $1.units })
        if super.totalUnitCount != total { super.totalUnitCount = total }
        for part in open { part.link.completedUnitCount = 1 }
    }

    private func write(_ units: Units) {
        if units.total != super.totalUnitCount { super.totalUnitCount = units.total }
        setCompleted(units.completed)
    }

    private func setCompleted(_ units: Int64) {
        #if canImport(Darwin)
        // A call of `super` passes by the setter that Foundation puts in place for observers.
        willChangeValue(forKey: "completedUnitCount")
        defer { didChangeValue(forKey: "completedUnitCount") }
        #endif
        super.completedUnitCount = units
    }
}

extension OperationProgress.Units {
    fileprivate init(_ fraction: Double, of total: Int64) {
        self.init(completed: Int64((fraction * Double(total)).rounded()), total: total)
    }

    /// Whether this is to be published after `earlier`: a known total, and no step back.
    fileprivate func replaces(_ earlier: Self) -> Bool {
        total > 0 && completed >= earlier.completed && self != earlier
    }
}

/// How much of a composite's work is done, as a value.
///
/// Children count by their weights: in full once they have ended, in whatever way, and in part while they report a
/// fraction. Where they are alternatives, the one that has come farthest counts alone.
struct ProgressLedger {
    /// Whether the children are alternatives, one of which does all the work.
    let isOfAlternatives: Bool
    private var total: Int64 = 0
    /// The work of the children that have ended, and what belongs to no child, such as a job of a waterfall that makes a
    /// value.
    var finished: Int64 = 0
    /// The fractions that the children that have not ended have reported, times their weights.
    private var partials: [Int: Double] = [:]
    /// Their sum; of alternatives, the largest fraction so far.
    private var partial = 0.0

    init(ofAlternatives isOfAlternatives: Bool = false) {
        self.isOfAlternatives = isOfAlternatives
    }

    /// A weight that counts: not negative, and not so large that sums could overflow.
    static func weight(_ given: Int64) -> Int64 { min(max(0, given), 1 << 31) }

    /// Work was added, or, with a negative weight, taken back.
    mutating func added(_ weight: Int64) {
        total += weight
    }

    /// A child has reached a fraction of its own work.
    mutating func advanced(_ child: Int, weight: Int64, to fraction: Double) {
        if isOfAlternatives { return partial = max(partial, min(fraction, 1)) }
        let share = min(max(fraction, 0), 1) * Double(weight)
        partial += share - (partials.updateValue(share, forKey: child) ?? 0)
    }

    /// A child has ended.
    mutating func ended(_ child: Int, weight: Int64) {
        finished += weight
        guard !partials.isEmpty, let share = partials.removeValue(forKey: child) else { return }
        partial = partials.isEmpty ? 0 : partial - share
    }

    /// The weights of what is done, and of all that there is, of at least one unit.
    var units: OperationProgress.Units? {
        let total = max(total, 1)
        return isOfAlternatives ? nil : OperationProgress.Units(completed: min(finished, total), total: total)
    }

    /// From 0 to 1. It falls when work is added; the fraction that is published does not.
    var fraction: Double {
        if isOfAlternatives { return partial }
        return total > 0 ? min(max((Double(finished) + partial) / Double(total), 0), 1) : 0
    }
}
