#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

extension Stress {
    /// Random trees of operations with several policies each, which are cancelled, finished and changed meanwhile. No model
    /// says what each of them does; some promises hold for all.
    @Suite("Stress: random policies") struct PolicyProgramTests {
        @Test("Random operations with policies keep all promises that need no model") func programs() async {
            let seed = StressSettings.seed ?? SplitMix64.freshSeed()
            let seconds = min(StressSettings.seconds, TestExtent.choose(0.5, long: .infinity))
            TestExtent.report("policies from STRESS_SEED=\(seed) on")
            let failure = await onThread { () -> String? in
                let end = Date(timeIntervalSinceNow: seconds)
                var number: UInt64 = 0
                while Date() < end {
                    let program = PolicyGenerator.program(seed: StressSettings.seed ?? (seed &+ number))
                    let run = PolicyRun(program)
                    run.perform()
                    let problems = run.problems.events
                    if !problems.isEmpty { return "STRESS_SEED=\(program.seed): \(problems)\n\(program)" }
                    number += 1
                }
                TestExtent.report("policies: \(number) programs in \(seconds) s, \(residentMemory() ?? 0) MiB")
                return nil
            }
            if let failure { Issue.record("\(failure)") }
        }
    }
}

/// One run of a program: makes its operations, looks after them while they work, and judges what has become of them.
final class PolicyRun: OperationObserver, @unchecked Sendable {
    let program: PolicyProgram
    let manualClock: ManualClock?
    let clock: any Clock<Duration>
    let gate = Gate()
    let tracker = LeakTracker()
    let (problems, observed) = (EventLog(), EventLog())
    let units = Shared<[PolicyUnit]>([])
    /// The roots, as long as they are not dropped, and the tasks that await them.
    let roots = Shared<[Operation?]>([])
    private let rootUnits = Shared<[PolicyUnit]>([])
    let tasks = Shared<[Task<Void, any Error>]>([])
    let queue = OperationQueue()
    let resources: Shared<[OperationResource]>
    let circuit: Shared<CircuitBreaker?>
    /// How many may have each resource, and who does.
    static let limits = [1, 2, 1, 2, 1, 3, 2, 4]
    private let users = Shared([[PolicyUnit]](repeating: [], count: limits.count))
    /// Between which times each `main()` with a rate limit was called.
    private let uses = Shared([[(ready: Duration, main: Duration)]](repeating: [], count: limits.count))
    static let ratePeriod = Duration.microseconds(900)
    private let began = ContinuousClock.now
    var time: Duration { manualClock?.now.offset ?? (ContinuousClock.now - began) }

    fileprivate init(_ program: PolicyProgram) {
        self.program = program
        manualClock = program.hasManualClock ? ManualClock() : nil
        clock = manualClock ?? ContinuousClock()
        resources = Shared([
            ExclusiveAccess("database"), ConcurrencyLimit("places", 2), KeyedExclusiveAccess("file")[1],
            KeyedConcurrencyLimit("host", 2)["a"], ExclusiveAccess("printer", maximumWaiting: 1),
            ConcurrencyLimit("workers", 3), RateLimit("slow", 2, per: Self.ratePeriod, clock: clock),
            RateLimit("fast", 4, per: Self.ratePeriod, maximumWaiting: 3, clock: clock),
        ])
        for resource in resources.value { tracker.track(resource, resource.name) }
        circuit = Shared(
            CircuitBreaker("circuit", minimumCalls: 4, openDuration: .microseconds(700), halfOpenCalls: 2, clock: clock)
        )
        queue.maxConcurrentOperationCount = program.queueLimit
    }

    /// Runs the program on the calling thread, and judges it.
    @available(*, noasync)
    fileprivate func perform() {
        _ = Self.ignoreReports
        roots.value = program.roots.map { make($0.node) }
        rootUnits.value = units.value.filter { unit in roots.value.contains { $0 === unit.operation } }
        let threads = DispatchGroup()
        for (root, operation) in zip(program.roots, roots.value) {
            guard let operation else { continue }
            if program.isObserved { (operation as? AsyncOperation)?.addObserver(self) }
            switch root.start {
            case .never: break
            case .queue: queue.addOperation(operation)
            case .byHand: onThread(in: threads) { operation.start() }
            case .awaited: tasks.change { $0.append(Task { [queue] in try await queue.run(operation) }) }
            }
        }
        for (_, actions) in Dictionary(grouping: program.actions.filter { $0.inside == nil }, by: \.thread) {
            onThread(in: threads) { [self] in
                var random = SplitMix64(seed: program.seed)
                for action in actions {
                    random.spinRandomly(upTo: action.spins)
                    act(action)
                }
            }
        }
        threads.wait()
        // Nothing holds up the end of anything any more.
        gate.open()
        act(PolicyAction(thread: 0, spins: 0, target: 0, effect: .suspend(false)))
        act(PolicyAction(thread: 0, spins: 0, target: 0, effect: .limit(-1)))
        for unit in units.value {
            act(.suspend(false), on: unit)
            act(.limit(-1), on: unit)
        }
        let started = zip(rootUnits.value, program.roots).filter { $1.start != .never }.map(\.0)
        func unfinished() -> [PolicyUnit] {
            (started + units.value.filter { $0.state.value.hasWorked || $0.startsAlone }).filter { unit in
                unit.state.value.completions == 0 && !(unit.isLoose && unit.operation == nil)
            }
        }
        if !eventually({ unfinished().isEmpty }) {
            let open = unfinished().map { $0.operation?.debugDescription ?? "\($0.name) is gone" }
            return problems.add("open: \(open)")
        }
        judgeEnds()
        letGo()
    }

    private func onThread(in group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
        group.enter()
        Thread.detachNewThread {
            body()
            group.leave()
        }
    }

    private func act(_ action: PolicyAction) {
        for unit in units.value.filter({ $0.node.id == action.target }).suffix(1) { act(action.effect, on: unit) }
        switch action.effect {
        case .limit(let limit) where action.target == 0: queue.maxConcurrentOperationCount = limit
        case .suspend(let isSuspended) where action.target == 0: queue.isSuspended = isSuspended
        case .describe: _ = OperationDiagnostics.description(of: queue)
        case .advance(let time): manualClock?.advance(by: .microseconds(time))
        case .cancelTask: tasks.value.first?.cancel()
        case .drop(let index):
            rootUnits.value[index].state.change { $0.isDropped = true }
            _ = roots.change { $0[index].take() }
        default: break
        }
    }

    private func act(_ effect: PolicyAction.Effect, on unit: PolicyUnit) {
        if case .cancel = effect { unit.operation?.cancel() }
        guard let operation = unit.operation as? AsyncOperation else { return }
        let compound = operation as? CompoundOperation
        switch effect {
        case .cancelWithReason: operation.cancel(withError: PolicyFailure(name: "reason"))
        case .finish:
            unit.state.change { $0.isSteered = true }
            if let step = operation as? IOOperation<Void, Void> { step.finish(with: ()) } else { operation.finish() }
        case .fail:
            unit.state.change { $0.isSteered = true }
            operation.finish(withError: PolicyFailure(name: "outside"))
        case .limit(let limit): compound?.maxConcurrentOperationCount = limit
        case .suspend(let isSuspended): compound?.isSuspended = isSuspended
        case .describe: _ = operation.debugDescription
        case .add(let node, let isStarted):
            guard let compound else { return }
            let child = make(node, in: unit, startsAlone: isStarted)
            if isStarted { DispatchQueue.global().async { child.start() } }
            do { try compound.addOperation(child) } catch { known(child)?.state.change { $0.isDropped = true } }
        case .cancel, .advance, .cancelTask, .drop: break
        }
    }

    // MARK: - What operations report

    /// The work of an operation begins, and with it that of all around it.
    func enter(_ unit: PolicyUnit) {
        let (leaf, time) = (unit, time)
        for unit in sequence(first: unit, next: { $0.startsAlone ? nil : $0.parent }) {
            let (problem, ready) = unit.state.change { state -> (String?, Duration?) in
                if state.operation == nil || state.isInside { return (nil, nil) }
                if state.isBarred { return ("works although it must not", nil) }
                if state.ends > 0 { return ("works after its end", nil) }
                (state.isInside, state.hasWorked) = (true, true)
                return (nil, state.ready)
            }
            if let problem, !leaf.state.value.isSteered { problems.add("\(unit.name) \(problem)") }
            guard let ready, !unit.node.kind.passesRequestToChildren else { continue }
            for index in unit.required {
                uses.change { $0[index].append((ready, time)) }
                // What a freed operation had is free soon.
                let all = users.change { users in
                    users[index].append(unit)
                    return users[index].filter { $0.operation != nil }.map(\.name)
                }
                if index < PolicyGenerator.heldCount, all.count > Self.limits[index] {
                    problems.add("all have “\(resources.value[index].name)”: \(all)")
                }
            }
        }
        for action in program.actions where action.inside == unit.node.id { act(action) }
    }

    private func known(_ operation: Operation) -> PolicyUnit? { units.value.last { $0.operation === operation } }

    /// The work of an operation, or of one attempt, ends now.
    func leave(_ unit: PolicyUnit) {
        unit.state.change { ($0.isInside, $0.ready) = (false, time) }
        users.change { users in for index in unit.required { users[index].removeAll { $0 === unit } } }
    }

    /// An operation ends, and is not finished yet.
    func ended(_ unit: PolicyUnit, _ operation: AsyncOperation?, _ error: (any Error)?) {
        leave(unit)
        unit.state.change { ($0.ends, $0.error) = ($0.ends + 1, error) }
        if let reason = operation?.cancellationReason as? OperationTimeoutError, error?.isCancellation == true {
            problems.add("\(unit.name) ends with \(String(describing: error)), not with \(reason)")
        }
        if error != nil { unit.needing?.state.change { $0.isBarred = true } }
    }

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        switch event.kind {
        case .started: observed.add("1 \(event.name)")
        case .running: observed.add("2 \(event.name)")
        case .finished: observed.add("3 \(event.name)")
        default: break
        }
    }

    // MARK: - Judging

    private func judgeEnds() {
        for unit in units.value where !unit.isLoose && unit.node.kind != .foreign {
            let state = unit.state.value
            if state.ends > 1 || state.completions > state.ends || state.hasWorked && state.ends == 0 {
                problems.add("\(unit.name) has ended \(state.ends) times, and completed \(state.completions) times")
            }
            if state.hasWorked, !state.isSteered, let problem = lostError(of: unit, state.error) {
                problems.add("\(unit.name) \(problem)")
            }
        }
        for (limit, uses) in zip(Self.limits, uses.value).dropFirst(PolicyGenerator.heldCount) {
            for (first, next) in zip(uses.map(\.ready).sorted(), uses.map(\.main).sorted().dropFirst(limit)) {
                if next - first < Self.ratePeriod { problems.add("\(limit + 1) began within \(next - first)") }
            }
        }
        let retried = Set(units.value.filter { $0.node.kind == .retriedTask }.map(\.name))
        for (name, events) in Dictionary(grouping: observed.events, by: { String($0.dropFirst(2)) }) {
            // A closure that is retried runs again after each attempt that had to wait.
            let again = retried.contains(name) ? events.filter { $0.hasPrefix("2") }.dropFirst() : []
            if (Array(Set(events)) + again).sorted() != events { problems.add("events of \(name): \(events)") }
        }
    }

    private func lostError(of unit: PolicyUnit, _ error: (any Error)?) -> String? {
        let children = units.value.filter { $0.parent === unit }.map { ($0.name, $0.state.value) }.filter {
            $1.ends > 0 && !$1.isDropped
        }
        switch unit.node.kind {
        case .compound:
            let failed = children.filter { $1.error?.isCancellation == false }.map(\.0).sorted()
            let reported = (error as? CompoundOperationError)?.suboperationErrors.map(\.name) ?? []
            return failed == reported.sorted() ? nil : "reports \(reported) of \(failed)"
        case .macro, .waterfall, .workflow, .repetition:
            // A step with an outcome that it was given from outside may decide.
            let isLost = children.contains { $1.error != nil } && !children.contains { $1.isSteered }
            return error == nil && isLost ? "loses an error" : nil
        case .retry, .hedge: return error == nil && children.allSatisfy { $1.error != nil } ? "loses its error" : nil
        default: return nil
        }
    }

    /// Lets go of everything: nothing is left, and all resources can be had.
    private func letGo() {
        (roots.value, tasks.value) = ([], [])
        let names = Set(resources.value.map(\.name))
        if !eventually({ names.isSuperset(of: tracker.alive) }) { problems.add("still alive: \(tracker.alive)") }
        for index in Self.limits.indices where !eventually({ canBeHad(index) }) {
            problems.add("“\(resources.value[index].name)” cannot be had")
        }
        if !eventually(isClosed) { problems.add("the circuit breaker stays \(circuit.value?.state as Any)") }
        if let manualClock { tracker.track(manualClock.timer, "timer") }
        resources.value = []
        circuit.value = nil
        if !eventually({ tracker.alive.isEmpty }) { problems.add("still alive: \(tracker.alive)") }
        if !eventually(passingTime: false, { manualClock?.deadlines.isEmpty ?? true }) {
            problems.add("the clock is slept on until \(manualClock?.deadlines ?? [])")
        }
    }

    /// Whether as many operations as may get a resource at the same time.
    private func canBeHad(_ index: Int) -> Bool {
        // Permits that were used return together if none is used meanwhile.
        let start = time
        if index >= PolicyGenerator.heldCount { _ = eventually { time - start > Self.ratePeriod * 2 } }
        // One that is granted just now on another thread may begin later.
        let begun = Shared<[FinishHandle<Void>]?>([])
        for _ in 0..<Self.limits[index] {
            let operation = AsyncBlockOperation(name: "p0.0") { finish in
                if begun.change({ $0?.append(finish) }) == nil { finish(nil) }
            }
            operation.require(resources.value[index], within: .zero)
            operation.start()
        }
        let finishes = begun.change { $0.take() } ?? []
        for finish in finishes { finish(nil) }
        return finishes.count == Self.limits[index]
    }

    private func isClosed() -> Bool {
        guard let circuit = circuit.value, circuit.state != .closed else { return true }
        let operation = AsyncBlockOperation { $0(nil) }
        operation.require(circuit)
        operation.start()
        return circuit.state == .closed
    }

    /// Waits for something that happens on other threads, up to a bound, and lets time pass.
    private func eventually(passingTime: Bool = true, _ condition: () -> Bool) -> Bool {
        let end = Date(timeIntervalSinceNow: 60)
        while !condition() {
            if Date() > end { return false }
            if passingTime { manualClock?.advance(by: .microseconds(100)) }
            DispatchQueue.global(qos: .utility).sync {}
        }
        return true
    }

    /// Operations that are dropped while they execute are reported.
    private static let ignoreReports: Void = {
        let handler = OperationDiagnostics.handler
        OperationDiagnostics.handler = { report in
            if case .released(let operation) = report, operation.name.contains(/\bp[0-9]+\.[0-9]+\b/) { return }
            handler?(report)
        }
    }()
}
#endif
