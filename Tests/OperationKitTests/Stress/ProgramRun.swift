import Dispatch
import Foundation
import OperationKit

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
    /// What was refused has dependencies and belongs to nobody, so it is kept until those have ended.
    let refused = Shared<[Operation]>([])
    /// Whether the program has ended, so that nothing may be held any more. The closure of a task may still be acting
    /// then, if it has finished its operation from inside.
    let hasLetGo = Shared(false)
    /// Nodes that are being added, or were refused. Nothing is added to these, because that would never run.
    private let notTaken = Shared<Set<Int>>([])
    /// What nodes wait for that is not inside the program.
    let outside = Shared<Operation?>(nil)
    private let laterQueue = OperationQueue()

    private init(_ program: StressProgram) {
        self.program = program
    }

    /// Runs a program on the calling thread, until all of it has ended.
    ///
    /// - Parameter patience: How many seconds to wait for its end, and for its objects to be gone.
    /// - Returns: What happened.
    @available(*, noasync)
    static func events(of program: StressProgram, patience: TimeInterval = 30) -> [StressEvent] {
        let run = ProgramRun(program)
        run.start()
        if !run.log.waitUntilClosed(before: Date(timeIntervalSinceNow: patience)) {
            // What still runs keeps the run alive, and it may go on to its end; nobody waits for it.
            return run.log.events + [.hung(run.state)]
        }
        run.inspect()
        run.letGo()
        let deadline = Date(timeIntervalSinceNow: patience)
        while !run.tracker.alive.isEmpty, Date() < deadline { yieldToOtherThreads() }
        let alive = run.tracker.alive
        return run.log.events + (alive.isEmpty ? [] : [.leaked(alive)])
    }

    /// Lets other threads do something that cannot be waited for.
    @available(*, noasync)
    private static func yieldToOtherThreads() {
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global(qos: .utility).async { done.signal() }
        done.wait()
    }

    private func start() {
        if program.nodes.contains(where: \.waitsForOutside) { prepareOutside() }
        let root = make(program.root)
        let threads = Dictionary(grouping: program.actions.indices) { index -> Int in
            if case .outside(let thread, _) = program.actions[index].trigger { thread } else { -1 }
        }
        for index in program.actions.indices where program.actions[index].trigger == .beforeStart { act(index) }
        for (thread, actions) in threads where thread >= 0 {
            onThreadOfItsOwn { [self] in
                for index in actions {
                    guard case .outside(_, let delay) = program.actions[index].trigger else { continue }
                    var random = SplitMix64(seed: program.seed &+ UInt64(index))
                    random.dawdle(upTo: UInt64(max(delay, 1)))
                    act(index)
                }
            }
        }
        if program.startsByHand {
            onThreadOfItsOwn { root.start() }
        } else {
            OperationQueue().addOperation(root)
        }
    }

    private func prepareOutside() {
        let operation = AsyncBlockOperation(name: "outside") { [self] finish in
            hop {
                self.log.add(.outsideEnded)
                finish(nil)
            }
        }
        operation.completionBlock = { [log] in log.closed() }
        log.opened()
        outside.value = operation
        onThreadOfItsOwn { [seed = program.seed] in
            var random = SplitMix64(seed: seed)
            random.dawdle(upTo: 3_000)
            OperationQueue().addOperation(operation)
        }
    }

    private func onThreadOfItsOwn(_ body: @escaping @Sendable () -> Void) {
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
        references.value = [:]
        refused.value = []
        outside.value = nil
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

// Actions.
extension ProgramRun {
    /// Does what is to be done when this leaf works.
    func actInside(_ id: Int) {
        for index in program.actions.indices where program.actions[index].trigger == .inside(id) { act(index) }
    }

    private func act(_ index: Int) {
        log.add(.acted(index, isAccepted: perform(program.actions[index].effect)))
    }

    private func perform(_ effect: StressAction.Effect) -> Bool {
        guard let operation = operation(effect.target) else { return false }
        switch effect {
        case .cancel:
            operation.cancel()
        case .cancelWithReason(let id):
            guard let operation = operation as? AsyncOperation else {
                operation.cancel()
                return true
            }
            operation.cancel(withError: StressError.reason(id))
        case .finish(let id, let fails):
            return (operation as? AsyncOperation)?.finish(withError: fails ? StressError.given(id) : nil) ?? false
        case .pause:
            setSuspended(operation, true)
            hop { [self] in setSuspended(operation, false) }
        case .squeeze(_, let limit):
            guard let compound = operation as? CompoundOperation else { return false }
            compound.maxConcurrentOperationCount = 0
            hop { compound.maxConcurrentOperationCount = limit }
        case .cancelSuspended:
            setSuspended(operation, true)
            operation.cancel()
        case .add(let node, _):
            guard let compound = operation as? CompoundOperation, !notTaken.value.contains(effect.target) else {
                return false
            }
            return add(node, to: compound)
        }
        return true
    }

    private func setSuspended(_ operation: Operation, _ isSuspended: Bool) {
        (operation as? CompoundOperation)?.isSuspended = isSuspended
        (operation as? Waterfall<Int, Int>)?.isSuspended = isSuspended
    }

    private func add(_ node: StressNode, to compound: CompoundOperation) -> Bool {
        notTaken.change { $0.formUnion(node.subtree.map(\.id)) }
        let operation = make(node)
        do {
            try compound.addOperation(operation)
            notTaken.change { $0.subtract(node.subtree.map(\.id)) }
            return true
        } catch {
            refused.change { if !hasLetGo.value { $0.append(operation) } }
            // It was opened when it was made, with all that is inside, and will not finish.
            for node in node.subtree where references.change({ $0[node.id] != nil }) { log.closed() }
            return false
        }
    }
}
