#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

extension Stress {
    /// Random trees of operations with several policies each, which are cancelled, finished and changed meanwhile. No model
    /// says what each of them does; some promises hold for all.
    @Suite("Stress: random policies") struct PolicyProgramTests {
        @Test("Random operations with policies keep all promises that need no model") func programs() async {
            let seed = StressSettings.seed ?? SplitMix64.freshSeed()
            let seconds = StressSettings.seconds
            TestExtent.report("policies from STRESS_SEED=\(seed) on")
            let failure = await onThread { () -> String? in
                let end = Date(timeIntervalSinceNow: seconds)
                var number: UInt64 = 0
                while Date() < end {
                    let program = PolicyGenerator.program(seed: StressSettings.seed ?? (seed &+ number))
                    let run = PolicyRun(program)
                    run.perform()
                    if !run.problems.events.isEmpty {
                        var text = "STRESS_SEED=\(program.seed): \(run.problems.events)\n"
                        dump(program, to: &text)
                        return text
                    }
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
    let uses = Shared([[(ready: Duration, main: Duration)]](repeating: [], count: limits.count))
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
        case .cancelQueue: OperationQueue.current?.cancelAllOperations()
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
        case .limit(let limit):
            unit.state.change { $0.isLimitOpen = true }
            compound?.maxConcurrentOperationCount = limit
        case .suspend(let isSuspended): compound?.isSuspended = isSuspended
        case .describe: _ = operation.debugDescription
        case .add(let node, let isStarted):
            guard let compound else { return }
            let child = make(node, in: unit, startsAlone: isStarted)
            if isStarted { DispatchQueue.global().async { child.start() } }
            do { try compound.addOperation(child) } catch { known(child)?.state.change { $0.isDropped = true } }
        case .cancel, .advance, .cancelTask, .cancelQueue, .drop: break
        }
    }

    // MARK: - What operations report

    /// The work of an operation begins, and with it that of all around it.
    func enter(_ unit: PolicyUnit) {
        let (leaf, time) = (unit, time)
        for unit in sequence(first: unit, next: { $0.startsAlone ? nil : $0.parent }) {
            let (problem, hasBegun, ready) = unit.state.change { state -> (String?, Bool, Duration?) in
                if state.operation == nil || state.isInside { return (nil, false, nil) }
                if state.isBarred { return ("works although it must not", false, nil) }
                if state.ends > 0 { return ("works after its end", false, nil) }
                (state.isInside, state.hasWorked) = (true, true)
                return (nil, true, state.ready)
            }
            if let problem, !leaf.state.value.isSteered { problems.add("\(unit.name) \(problem)") }
            if hasBegun { look(at: unit) }
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

    /// Those that an operation depends on have ended when its work begins, and no more siblings work than may.
    private func look(at unit: PolicyUnit) {
        if unit.startsAlone { return }
        let open = unit.operation?.dependencies.filter { !$0.isFinished } ?? []
        if !open.isEmpty, unit.operation?.isCancelled == false { problems.add("\(unit.name) begins before \(open)") }
        guard let parent = unit.parent, parent.node.kind.limitsChildren, !parent.state.value.isLimitOpen else { return }
        let siblings = units.value.filter { $0.parent === parent && $0.isWorking }
        if siblings.count > parent.node.limit { problems.add("\(siblings.map(\.name)) work at the same time") }
    }

    func known(_ operation: Operation) -> PolicyUnit? { units.value.last { $0.operation === operation } }

    /// The work of an operation, or of one attempt, ends now.
    func leave(_ unit: PolicyUnit) {
        unit.state.change { ($0.isInside, $0.ready) = (false, time) }
        users.change { users in for index in unit.required { users[index].removeAll { $0 === unit } } }
    }

    /// An operation ends, and is not finished yet.
    func ended(_ unit: PolicyUnit, _ operation: AsyncOperation?, _ error: (any Error)?) {
        leave(unit)
        unit.state.change { ($0.ends, $0.error) = ($0.ends + 1, error) }
        let open = units.value.filter { $0.parent === unit && $0.isWorking }
        if !open.isEmpty { problems.add("\(unit.name) ends before \(open.map(\.name))") }
        if let reason = operation?.cancellationReason as? OperationTimeoutError, error?.isCancellation == true {
            problems.add("\(unit.name) ends with \(String(describing: error)), not with \(reason)")
        }
        if error == nil { return }
        for unit in unit.state.value.dependents + [unit.needing].compactMap(\.self) {
            unit.state.change { $0.isBarred = true }
        }
    }

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        switch event.kind {
        case .started: observed.add("1 \(event.name)")
        case .running: observed.add("2 \(event.name)")
        case .finished: observed.add("3 \(event.name)")
        default: break
        }
    }

    /// Waits for something that happens on other threads, up to a bound, and lets time pass.
    func eventually(passingTime: Bool = true, _ condition: () -> Bool) -> Bool {
        let end = Date(timeIntervalSinceNow: 60)
        while !condition() {
            if Date() > end { return false }
            if passingTime { manualClock?.advance(by: .microseconds(100)) }
            DispatchQueue.global(qos: .utility).sync {}
        }
        return true
    }

    /// What programs drop at work, or lose, would be reported in thousands of lines.
    private static let ignoreReports: Void = {
        let handler = OperationDiagnostics.handler
        OperationDiagnostics.handler = { report in
            if !report.description.contains(/\bp[0-9]+\.[0-9]+\b/) { handler?(report) }
        }
    }()
}
#endif
