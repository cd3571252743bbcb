import OperationKitTestSupport

/// One run of a program: makes its operations, does its actions, and writes down what happens.
final class ProgramRun: @unchecked Sendable {
    /// An operation that is held, or only known.
    struct Reference {
        var held: Operation?
        weak var known: Operation?
    }

    let program: StressProgram
    let facts: ProgramFacts
    let log = StressLog()
    let tracker = LeakTracker()
    /// By node. Read and changed with the lock held.
    let references = Shared<[Int: Reference]>([:])
    /// What was refused, or got a dependency late, may be gone before what it depends on has ended, so it is kept until
    /// then.
    let kept = Shared<[Operation]>([])
    /// Whether the program has ended, so that nothing may be held any more. The closure of a task may still be acting
    /// then, if it has finished its operation from inside.
    let hasLetGo = Shared(false)
    /// Nodes that are being added, or were refused. Nothing is added to these, because that would never run.
    let notTaken = Shared<Set<Int>>([])
    /// What nodes wait for that is not inside the program.
    let external = Shared<Operation?>(nil)
    /// What nodes wait for that never begins.
    let never = Shared<Operation?>(nil)
    /// The task that awaits the root.
    let waiting = Shared<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))
    let parents: [Int: Int]
    let macroSteps: Set<Int>
    /// Nodes that are added while the program runs.
    let additions: Set<Int>
    private let laterQueue = OperationQueue()
    /// What events are written down by, if any are.
    let observer: ProgramObserver

    private init(_ program: StressProgram) {
        self.program = program
        facts = ProgramFacts(program)
        observer = ProgramObserver(log)
        var parents: [Int: Int] = [:]
        for node in program.nodes { for child in node.children { parents[child.id] = node.id } }
        self.parents = parents
        macroSteps = Set(
            program.nodes.flatMap { if case .macro(let steps) = $0.work { steps.map(\.id) } else { [Int]() } })
        additions = Set(program.additions.map(\.node.id))
    }

    /// Runs a program on the calling thread, until all of it has ended.
    ///
    /// - Parameters:
    ///   - program: The program.
    ///   - hangTimeout: How many seconds to wait for its end, and for its objects to be gone.
    /// - Returns: What happened.
    @available(*, noasync)
    static func events(of program: StressProgram, hangTimeout: TimeInterval = 120) -> [StressEvent] {
        _ = collectReports
        reports.value = []
        let run = ProgramRun(program)
        run.start()
        if !run.log.waitUntilClosed(before: Date(timeIntervalSinceNow: hangTimeout)) {
            // What still runs keeps the run alive, and it may go on to its end; no test waits for it.
            return run.log.events + [.hung(run.state)]
        }
        run.inspect()
        run.letGo()
        let deadline = Date(timeIntervalSinceNow: hangTimeout)
        while !run.tracker.alive.isEmpty, Date() < deadline { yieldToOtherThreads() }
        let alive = run.tracker.alive
        let mistakes = reports.value.map { StressEvent.reported($0) }
        return run.log.events + mistakes + (alive.isEmpty ? [] : [.leaked(alive)])
    }

    /// Operations that were released while they were executing. They may be reported only during the next program.
    private static let reports = Shared<[String]>([])

    /// What programs lose on purpose would be printed in thousands of lines.
    private static let collectReports: Void = {
        let handler = OperationDiagnostics.handler
        OperationDiagnostics.handler = { report in
            switch report {
            case .lostFinish: break
            // Tests that run at the same time release theirs.
            case .released(let operation) where operation.name.contains(/\bn[0-9]+\b/):
                reports.change { $0.append(report.description) }
            case .released: handler?(report)
            case .finishedAfterSuperMain, .lateDependency, .latePolicy: handler?(report)
            }
        }
    }()

    /// Lets other threads do something that cannot be waited for.
    @available(*, noasync)
    private static func yieldToOtherThreads() {
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global(qos: .utility).async { done.signal() }
        done.wait()
    }

    private func start() {
        if program.needsOutside { prepareOutside() }
        if program.nodes.contains(where: { $0.waitsForever || $0.dropsDependency }) {
            never.value = tracker.track(program.isExternalStock ? BlockOperation() : AsyncOperation(), "never")
        }
        let root = make(program.root)
        if program.observation == .root { observeEvents(of: root) }
        let threads = Dictionary(grouping: program.actions.indices) { index -> Int in
            if case .outside(let thread, _) = program.actions[index].trigger { thread } else { -1 }
        }
        for index in program.actions.indices where program.actions[index].trigger == .beforeStart { act(index) }
        for (thread, actions) in threads where thread >= 0 {
            onThreadOfItsOwn { [self] in
                for index in actions {
                    guard case .outside(_, let delay) = program.actions[index].trigger else { continue }
                    var random = SplitMix64(seed: program.seed &+ UInt64(index))
                    random.spinRandomly(upTo: UInt64(max(delay, 1)))
                    act(index)
                }
            }
        }
        switch program.start {
        case .queue: tracker.track(OperationQueue(), "queue").addOperation(root)
        case .byHand: onThreadOfItsOwn { root.start() }
        case .task, .coordinator: startInTask(root)
        }
    }

    private func startInTask(_ root: Operation) {
        log.opened()
        let task = Task { [self] in
            if waiting.value.isCancelled { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
            let error = await program.start == .task ? error(ofRunning: root) : error(ofCoordinating: root)
            log.add(.awaited(StressOutcome(error)))
            log.closed()
        }
        let isCancelled = waiting.change { waiting in
            waiting.task = task
            return waiting.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    private func error(ofRunning root: Operation) async -> (any Error)? {
        do { try await tracker.track(OperationQueue(), "queue").run(root) } catch { return error }
        return nil
    }

    private func error(ofCoordinating root: Operation) async -> (any Error)? {
        await Coordinator().performOperations([root]).first ?? nil
    }

    struct Coordinator: ParallelOperationCoordinator {
        let maxConcurrentOperationCount = 2
    }

    private func prepareOutside() {
        let operation: Operation
        if program.isExternalStock {
            operation = BlockOperation { [log] in log.add(.externalEnded) }
        } else {
            operation = AsyncBlockOperation(name: "external") { [self] finish in
                hop {
                    self.log.add(.externalEnded)
                    finish(nil)
                }
            }
        }
        tracker.track(operation, "external")
        operation.completionBlock = { [log] in log.closed() }
        log.opened()
        external.value = operation
        onThreadOfItsOwn { [seed = program.seed] in
            var random = SplitMix64(seed: seed)
            random.spinRandomly(upTo: 3_000)
            OperationQueue().addOperation(operation)
        }
    }

    func onThreadOfItsOwn(_ body: @escaping @Sendable () -> Void) {
        log.opened()
        Thread { [log] in
            body()
            log.closed()
        }.start()
    }

    /// Goes on on another thread.
    func hop(_ body: @escaping @Sendable () -> Void) {
        log.opened()
        DispatchQueue.global().async { [log] in
            body()
            log.closed()
        }
    }

    /// Goes on as an operation of a queue.
    func later(_ body: @escaping @Sendable () -> Void) {
        log.opened()
        laterQueue.addOperation { [log] in
            body()
            log.closed()
        }
    }

    func operation(_ id: Int) -> Operation? {
        references.change { $0[id]?.known }
    }

    private func inspect() {
        for (id, reference) in references.value {
            guard let operation = reference.held else { continue }
            log.add(
                .rest(
                    id, isFinished: operation.isFinished, isExecuting: operation.isExecuting,
                    isCancelled: operation.isCancelled))
        }
    }

    private func letGo() {
        // It comes first, because those that hold something look at it with the lock of what they hold it in.
        hasLetGo.value = true
        // What is still being delivered is known by what it is about.
        references.change { references in
            for id in references.keys { references[id]?.held = nil }
        }
        kept.value = []
        external.value = nil
        never.value = nil
        waiting.value.task = nil
    }

    /// What has not finished.
    private var state: [String] {
        references.value.sorted { $0.key < $1.key }.compactMap { id, reference in
            guard let operation = reference.known, !operation.isFinished else { return nil }
            return "n\(id)" + (operation.isExecuting ? " executing" : operation.isReady ? " ready" : " waiting")
                + (operation.isCancelled ? ", cancelled" : "")
        }
    }
}
