#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// A compound in a run, with children that write down what happens to them.
final class CompoundSubject: ExplorationSubject, @unchecked Sendable {
    let compound: CompoundOperation
    let children: [ScriptedOperation]
    private let held: Set<Int>
    private let holdsLate: Bool
    /// To be added by the test; its state is the test's, too.
    let late: ScriptedOperation
    private(set) var added: [ScriptedOperation] = []
    /// No child depends on it from the beginning; it is no child, and ends only when nothing else can go on.
    let outer = ScriptedOperation.idle("outer")
    /// A compound whose only child is the one under test.
    let around: CompoundOperation?
    private let progress: Progress?

    /// Whether the children that are not ready by themselves are.
    private let isOpen = Shared(false)

    private struct Record {
        var begun: [String] = []
        /// Ended by other code than itself, perhaps before it could begin.
        var ended: Set<String> = []
        var all: [ScriptedOperation] = []
        var problems: [String] = []
        /// Those whose dependencies are not waited for, because another thread starts them.
        var startedByHand: Set<String> = []
        /// Those of them that a compound in its run did not have yet. It learns of the end of the others only when it
        /// begins them.
        var startedBefore: Set<String> = []
        /// Whether a child was accepted that closes a cycle.
        var hasCycle = false
        /// Those whose addition has begun.
        var arriving: Set<String> = []
        /// Once `cancel()` has returned: who had been started until then.
        var started: Set<String>?
        /// Whether the outcome that was given to the compound was accepted.
        var isGiven = false
        /// The limit that was there from the beginning, as long as it is not changed.
        var limit: Int
        /// Those that have done half of their work.
        var halfDone: Set<String> = []
        var lastFraction = 0.0
    }

    private let record: Shared<Record>
    private let ending: Ending
    /// Gets the name of the child.
    typealias Work = @Sendable (String) -> Void
    private let work: Work

    /// Creates a compound that has not started.
    ///
    /// - Parameters:
    ///   - count: The number of children.
    ///   - held: Which children do not end by themselves.
    ///   - unready: Which children are not ready before the test says so.
    ///   - dependencies: Which child waits for which other.
    ///   - requirements: Which child requires the success of which other. -1 stands for `outer`.
    ///   - limit: The maximum number of children that run at the same time; -1 for no limit.
    ///   - policy: The failure policy.
    ///   - isNested: Whether the compound is the only child of another one.
    ///   - holdsLate: Whether the child that the test adds does not end by itself either.
    ///   - isProgressObserved: Whether the progress of the compound is watched.
    ///   - work: What the children do.
    init(
        children count: Int, held: Set<Int> = [], unready: Set<Int> = [], dependencies: [(Int, Int)] = [],
        requirements: [(Int, Int)] = [], limit: Int = -1, policy: FailurePolicy = .continueAll, isNested: Bool = false,
        holdsLate: Bool = false, isProgressObserved: Bool = false, work: @escaping Work = { _ in }
    ) {
        let record = Shared(Record(limit: limit))
        (self.record, self.held, self.holdsLate, self.work) = (record, held, holdsLate, work)
        let isOpen = isOpen
        let children = (0..<count).map {
            CompoundSubject.child(
                "\($0)", isHeld: held.contains($0), isOpen: unready.contains($0) ? isOpen : nil, record, work)
        }
        late = CompoundSubject.child("late", isHeld: holdsLate, record, work)
        self.children = children
        for (child, other) in dependencies { children[child].addDependency(children[other]) }
        for (child, other) in requirements {
            children[child].requireSuccess(of: other < 0 ? outer : children[other])
        }
        compound = CompoundOperation(
            name: "compound", operations: children, maxConcurrentOperationCount: limit, failurePolicy: policy)
        around = isNested ? CompoundOperation(name: "around", operations: [compound]) : nil
        record.note { $0.all = children }
        for object in children + [outer, late] { VirtualThread.expectRelease(of: object, object.displayName) }
        if let around { VirtualThread.expectRelease(of: around, "around") }
        progress = isProgressObserved ? compound.progress : nil
        ending = Ending(of: compound, "compound") { [unowned compound, progress] in
            let fraction = compound.error == nil ? progress?.fractionCompleted ?? 1 : 1
            return fraction == 1 ? [] : ["completed at \(fraction)"]
        }
    }

    private static func child(
        _ name: String, isHeld: Bool, isOpen: Shared<Bool>? = nil, _ record: Shared<Record>, _ work: @escaping Work
    ) -> ScriptedOperation {
        let child = AskedAsyncOperation(
            isReady: { $1 && (isOpen?.value != false || $0.isCancelled) },
            main: { operation in
                let (all, limit) = (record.value.all, record.value.limit)
                let working = VirtualThread.inOneStep { all.count(where: \.isExecuting) }
                let open = VirtualThread.inOneStep { operation.dependencies.filter { !$0.isFinished } }
                record.note {
                    $0.begun.append(name)
                    if $0.started?.contains(name) == false { $0.problems.append("\(name) began, though cancelled") }
                    if limit > 0, working > limit { $0.problems.append("\(working) are working") }
                    if open.isEmpty || operation.isCancelled || $0.startedByHand.contains(name) { return }
                    $0.problems.append("\(name) began early")
                }
                VirtualThread.place("child")
                work(name)
                if !isHeld { operation.finish() }
            })
        child.name = name
        return child
    }

    func end(_ child: Int, _ error: TestError? = nil) { end(children[child], error) }

    func end(_ child: ScriptedOperation, _ error: TestError? = nil) {
        record.note { _ = $0.ended.insert(child.displayName) }
        child.finish(withError: error)
        look()
    }

    /// A child has done half of its work, and may end then.
    func report(_ child: Int, ends: Bool = false) {
        let child = children[child]
        VirtualThread.inOneStep { child.progress.totalUnitCount = 2 }
        record.note { _ = $0.halfDone.insert(child.displayName) }
        child.progress.completedUnitCount = 1
        look()
        if ends { end(child) }
    }

    /// Work that has not been done is not counted, and the fraction never falls.
    private func look() {
        guard let progress else { return }
        VirtualThread.inOneStep {
            let halfDone = record.value.halfDone
            let done = (children + [late]).map { $0.hasOutcome ? 1 : halfDone.contains($0.displayName) ? 0.5 : 0 }
            // The late one may be counted before its addition has returned.
            let bounds = [done.count - 1, done.count].map { done.prefix($0).reduce(0, +) / Double($0) }
            let fraction = progress.fractionCompleted
            record.note {
                if fraction > max(bounds[0], bounds[1]) + 1e-9 { $0.problems.append("\(fraction), not \(bounds)") }
                if fraction < $0.lastFraction { $0.problems.append("\(fraction) after \($0.lastFraction)") }
                $0.lastFraction = fraction
            }
        }
    }

    func finishFromOutside() {
        let isAccepted = compound.finish(withError: TestError.second)
        record.note { $0.isGiven = isAccepted }
    }

    /// Children that were not ready are.
    func open() { isOpen.change { $0 = true } }

    func start() { (around ?? compound).start() }

    /// Cancels the compound, or the one around it.
    func cancel(around isAround: Bool = false) {
        (isAround ? around ?? compound : compound).cancel()
        let isOver = VirtualThread.inOneStep { compound.isFinished || !compound.isCancelled }
        if isOver { return }
        let started = VirtualThread.inOneStep { children.filter(\.hasStarted) }
        record.note { if $0.started == nil { $0.started = Set(started.compactMap(\.name)) } }
        // A child whose outcome is being delivered ends as it was going to.
        for child in children where VirtualThread.inOneStep({ !child.isCancelled && !child.hasOutcome }) {
            record.note { $0.problems.append("\(child.displayName) is not cancelled") }
        }
    }

    /// Cancels the compound with a reason.
    func cancelWithReason() { compound.cancel(withError: TestError.reason) }

    /// Another thread starts a child, whatever it waits for.
    func startByHand(_ child: ScriptedOperation) {
        record.note { _ = $0.startedByHand.insert(child.displayName) }
        child.start()
        let isChild =
            VirtualThread.inOneStep { children.contains(child) && compound.hasStarted }
            || record.value.arriving.contains(child.displayName)
        if !isChild { record.note { _ = $0.startedBefore.insert(child.displayName) } }
    }

    /// Adds a child that ends by itself, after another one.
    func add(after dependency: Operation? = nil) {
        let child = CompoundSubject.child("added", isHeld: false, record, work)
        if let dependency { child.addDependency(dependency) }
        add(child)
    }

    /// Adds a child that waits for one that waits for it. It is refused; or, while the compound begins and asks its
    /// children for their dependencies, it may be accepted, and then the compound ends with the cycle.
    func addRefused(_ child: ScriptedOperation) {
        do {
            try compound.addOperation(child)
            record.note { $0.hasCycle = true }
            added.append(child)
        } catch CompoundAdditionError.alreadyAdded {
            // Another thread is just adding it, too.
        } catch CompoundOperationError.dependencyCycle {
            let isTouched = VirtualThread.inOneStep {
                child.isCancelled || child.isFinished || !child.enclosing.isEmpty
            }
            if isTouched { record.note { $0.problems.append("\(child.displayName) was touched") } }
        } catch {
            record.note { $0.problems.append("\(error)") }
        }
    }

    func add(_ child: ScriptedOperation, failing: Bool = false) {
        if failing { child.finish(withError: TestError.first) }
        record.note { _ = $0.arriving.insert(child.displayName) }
        do {
            try compound.addOperation(child)
            added.append(child)
        } catch CompoundAdditionError.compoundFinished {
            if !VirtualThread.inOneStep({ children.allSatisfy(\.isFinished) }) {
                record.note { $0.problems.append("refused too early") }
            }
        } catch {
            record.note { $0.problems.append("\(error)") }
        }
    }

    /// What nothing holds back has ended by now.
    func endHeld() {
        look()
        VirtualThread.inOneStep { lookForForgotten() }
        record.note { $0.limit = -1 }
        start()
        for index in held { end(index) }
        if holdsLate { end(late) }
    }

    func endAll() {
        VirtualThread.inOneStep { lookForForgotten() }
        outer.start()
        outer.finish()
        open()
        // What was left behind on a queue that stays suspended would come back.
        if VirtualThread.inOneStep({ compound.isFinished }) { return }
        compound.isSuspended = false
        compound.maxConcurrentOperationCount = 2
    }

    private func lookForForgotten() {
        let isOpen = (children + added).contains { child in
            let record = record.value
            let isUnknown = record.startedByHand.subtracting(record.startedBefore).contains(child.displayName)
            return !child.isFinished || (isUnknown && !child.isCancelled)
        }
        if compound.isExecuting, !isOpen { record.note { $0.problems.append("the compound goes on waiting") } }
        guard compound.isExecuting, !compound.isSuspended, compound.maxConcurrentOperationCount < 0 else { return }
        let ended = record.value.ended
        for child in children + added where !child.isFinished {
            if child === late ? holdsLate : held.contains(where: { children[$0] === child }),
                !ended.contains(child.displayName)
            {
                continue
            }
            guard child.isCancelled || child.dependencies.allSatisfy(\.isFinished) else { continue }
            record.note { $0.problems.append("\(child.displayName) is forgotten") }
        }
    }

    /// What is wrong after everything is over.
    func problems() -> [String] {
        // The children hold the record.
        let record = record.note {
            $0.all = []
            return $0
        }
        var problems = record.problems + ending.problems()
        for child in children + added where !child.isFinished {
            problems.append("\(child.name ?? "") has not finished")
        }
        if Set(record.begun).count != record.begun.count { problems.append("begun: \(record.begun)") }
        if let progress, progress.fractionCompleted != 1 { problems.append("\(progress.fractionCompleted) is done") }
        for child in children + added where compound.error == nil && !child.isCancelled {
            let name = child.name ?? ""
            if record.begun.contains(name) || record.ended.contains(name) || child.isBlocked { continue }
            problems.append("\(name) was left out")
        }
        if record.isGiven != (text(compound.error) == "second") { problems.append("ended with another outcome") }
        if case .dependencyCycle = compound.error as? CompoundOperationError, !record.hasCycle {
            problems.append("a refused addition failed the compound")
        }
        for failure in (compound.error as? CompoundOperationError)?.suboperationErrors ?? [] {
            let count = children.count + added.count
            if failure.siblingCount == count, failure.index < count { continue }
            problems.append("\(failure.name) is number \(failure.index) of \(failure.siblingCount ?? -1)")
        }
        return problems + reportProblems()
    }

    /// The compound reports each cause once, and is a failure of the one around it if it is one.
    private func reportProblems() -> [String] {
        var problems: [String] = []
        if let around, !around.isCancelled {
            let isFailure = compound.error.map { !$0.isCancellation } ?? false
            if (around.error != nil) != isFailure { problems.append("around: \(text(around.error))") }
            if compound.isCancelled, text(compound.error).contains("TestError.reason"),
                (around.error as? CompoundOperationError)?.leafErrors.contains(where: { text($0) == "reason" }) != true
            {
                problems.append("around, the reason is lost: \(text(around.error))")
            }
        }
        if case .dependencyCycle = compound.error as? CompoundOperationError { return problems }
        if text(compound.error) == "second" { return problems }
        let reports = (compound.error as? CompoundOperationError)?.suboperationErrors ?? []
        let all = children + added
        let blocked = all.count { $0.isBlocked && $0.error?.isCancellation == false }
        let failed = all.filter { $0.error?.isCancellation == false && !$0.isBlocked }.compactMap(\.name)
        let own = reports.filter { !($0.error is DependencyError) }.compactMap(\.name)
        if own.sorted() != failed.sorted() { problems.append("\(failed) failed: \(reports)") }
        // Of those that the operation outside kept from running, one is reported.
        let outside = reports.count - own.count
        if outside > 1 || reports.map(\.blockedCount).reduce(outside, +) != blocked {
            problems.append("\(blocked) did not run: \(reports)")
        }
        return problems
    }
}

extension AsyncOperation {
    fileprivate var hasStarted: Bool { withState { !$0.lifecycle.isPending } }
    fileprivate var enclosing: [AsyncOperation] { Array(enclosingOperations) }
    fileprivate var isBlocked: Bool { error is DependencyError }
    fileprivate var hasOutcome: Bool { withState { $0.lifecycle.outcome != nil } }
}
#endif

extension Shared {
    /// Changes the value in one step: the names that the body asks for are behind locks of the operations.
    fileprivate func note<Answer>(_ body: (inout Value) -> Answer) -> Answer {
        VirtualThread.inOneStep { change(body) }
    }
}
