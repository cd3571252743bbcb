import Dispatch
import Foundation
import OperationKit
import OperationKitTestSupport

/// One run of a program: makes its operations, does its actions, and writes down what happens.
final class ProgramRun: @unchecked Sendable {
    /// An operation that is held, or only known.
    struct Reference {
        var held: Operation?
        weak var known: Operation?
    }

    let program: StressProgram
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
    /// What timeouts and delays are measured with.
    let clock = ManualClock()
    /// Held while the clock is advanced.
    let clockLock = NSLock()
    /// What operations require, if any do.
    let resources = Shared<ProgramResources?>(nil)
    /// What some conditions wait for.
    let gate = Gate()
    /// The task that awaits the root.
    let waiting = Shared<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))
    let parents: [Int: Int]
    let macroSteps: Set<Int>
    /// Nodes that are added while the program runs.
    let additions: Set<Int>
    private let laterQueue = OperationQueue()
    let unitQueue = DispatchQueue(label: "units")
    /// What events are written down by, if any are.
    let observer: ProgramObserver
    /// A progress above those of these leaves.
    private let shared = Shared<(leaves: [Int], progress: Progress)?>(nil)
    private let probeQueue = DispatchQueue(label: "probe")

    private init(_ program: StressProgram) {
        self.program = program
        observer = ProgramObserver(log, references)
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
        if !run.waitUntilEnd(before: Date(timeIntervalSinceNow: hangTimeout)) {
            // What still runs keeps the run alive, and it may go on to its end; no test waits for it.
            return run.log.events + [.hung(run.state)]
        }
        if !run.useResourcesAgain(before: Date(timeIntervalSinceNow: hangTimeout)) {
            return run.log.events + [.hung(["a resource is not released"])]
        }
        run.inspect()
        run.letGo()
        let deadline = Date(timeIntervalSinceNow: hangTimeout)
        while !run.leftBehind.isEmpty, Date() < deadline { yieldToOtherThreads() }
        let alive = run.leftBehind
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
        if program.needsResources { resources.value = ProgramResources(clock, tracker) }
        if program.nodes.contains(where: { $0.waitsForever || $0.dropsDependency }) {
            never.value = tracker.track(program.isExternalStock ? BlockOperation() : AsyncOperation(), "never")
        }
        let root = make(program.root)
        if program.observation == .root { observeEvents(of: root) }
        if program.sharesProgress { shareProgress() }
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
        case .byHand:
            // Nothing else holds an operation that waits for a resource.
            if !program.root.policies.resources.isEmpty { kept.change { $0.append(root) } }
            onThreadOfItsOwn { root.start() }
        case .task, .coordinator: startInTask(root)
        case .delayed: startAfterDelay(root)
        }
    }

    private func shareProgress() {
        let facts = ProgramFacts(program)
        // What has ended when it becomes a part of a progress does not count there.
        let leaves = program.root.subtree.filter { node in
            facts.isShared(node) && operation(node.id).map { !$0.isFinished && !$0.isExecuting } == true
        }
        let progress = Progress.discreteProgress(totalUnitCount: Int64(leaves.count))
        for leaf in leaves {
            guard let operation = operation(leaf.id) as? AsyncOperation else { continue }
            progress.addChild(operation.progress, withPendingUnitCount: 1)
        }
        shared.value = (leaves.map(\.id), progress)
        // Two threads, each for leaves of its own.
        for half in 0...1 {
            let operations = leaves.filter { $0.id % 2 == half }.compactMap { operation($0.id) as? AsyncOperation }
            onThreadOfItsOwn { for operation in operations { operation.countUnits() } }
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

    /// Makes another thread ask operations what they take their locks for, while the caller is in work or in a block.
    func probeLocks() {
        guard program.probesLocks else { return }
        let done = DispatchSemaphore(value: 0)
        probeQueue.async { [self] in
            for reference in references.value.values {
                guard let operation = reference.known else { continue }
                _ = operation.isExecuting
                _ = (operation as? CompoundOperation)?.isSuspended
                _ = (operation as? AsyncOperation)?.error
            }
            done.signal()
        }
        if done.wait(timeout: .now() + 10) == .timedOut { log.add(.hung(["a lock is held during a call"])) }
    }

    func operation(_ id: Int) -> Operation? {
        references.change { $0[id]?.known }
    }

    private func inspect() {
        if let (leaves, progress) = shared.value {
            log.add(.shared(leaves, fraction: progress.fractionCompleted))
        }
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
        // An evaluation goes on when its operation has ended.
        gate.open()
        // What is still being delivered is known by what it is about.
        references.change { references in
            for id in references.keys { references[id]?.held = nil }
        }
        kept.value = []
        external.value = nil
        never.value = nil
        shared.value = nil
        resources.value = nil
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
