import OperationKitTestSupport

@testable import OperationKit

/// A state machine with its surroundings, as far as they have come: the children, the workers, and what may still happen.
///
/// Each step does what ``ChildStateMachine`` does in one event. All that the test knows of ``ReadinessStateMachine``'s parts is in
/// the files of this type.
struct ScheduleExplorer {
    /// What other threads may do, and how often.
    struct Budget: Hashable {
        var additions = 0
        var limits: [Int] = []
        var suspensions = 0
        var releases = 0
        var cancellations = 0
        var takenBack = 0
        /// Whether the external dependency may become a child.
        var adoptions = 0
        /// How many ends of children are reported as progress before they count.
        var reports = 0
    }

    /// What the external dependency is called among those that a child waits for.
    static let external = -1

    enum Stage: Int, Hashable {
        case added, waiting
        /// A worker is inside `start()`, or has been and knows that the child has not ended.
        case starting, watched
        /// It has ended before its worker could say that it goes on.
        case watchedEnded
        case alone, queued, ended

        var isStarted: Bool { self == .starting || self == .watched || self == .alone }
        var isWorker: Bool { self == .starting || self == .watched || self == .watchedEnded }
        var isOver: Bool { self == .ended || self == .watchedEnded }
    }

    struct Child: Hashable {
        let slot: Int
        var stage = Stage.added
        var waitsFor: Set<Int> = []
        var ignoresDependencies = false
        /// Whether its end is being reported.
        var isEnding = false
        /// Whether it was given to the queue without a worker, which has not taken it yet.
        var isHandedOver = false
        /// Whether the queue, which it was handed, can start it.
        var isReadyOnQueue = true

        var mayBeEnding: Bool { (stage.isStarted || stage == .queued) && !isEnding }
    }

    enum Step {
        case begin, cancelling, cancelled, limit(Int), suspend, resume, workerComes, externalEnds, externalJoins
        case add(dependsOn: Int?), registered(Int), takeBack(Int), release(Int), isFinished(Int)
        case isWatched(Int), goesOn(Int, isLast: Bool), ending(Int), ends(Int), hasEnded(Int, isLast: Bool)
        case handedToQueue(Int, isLast: Bool), handedBack(Int), waitsOnQueue(Int)
    }

    var readiness: ReadinessStateMachine
    var children: [Child] = []
    var budget: Budget
    /// Whether a child that does not wait any more waits for its siblings nevertheless.
    let keepsOrder: Bool
    /// The slot of an external dependency, as long as children wait for it.
    var externalSlot: Int?
    var onTheWay = 0
    var hasStarted = false
    var isCancelling = false
    var isCancelled = false
    var hasEnded = false
    var steps: [Step] = []
    var violation: String?

    init(children count: Int, dependencies: [(Int, Int)], limit: Int, keepsOrder: Bool = false, budget: Budget) {
        readiness = ReadinessStateMachine(limit: limit, keepsOrder: keepsOrder)
        self.keepsOrder = keepsOrder
        self.budget = budget
        for _ in 0..<count { children.append(Child(slot: readiness.table.insert(.placeholder))) }
        for (child, other) in dependencies { children[child].waitsFor.insert(other) }
        connect()
    }

    /// Tells the state machine which child waits for which.
    private mutating func connect() {
        if children.contains(where: { $0.stage != .ended && $0.waitsFor.contains(Self.external) }) {
            externalSlot = readiness.table.insertExternal()
        }
        for child in children where child.stage != .ended {
            for other in child.waitsFor.sorted() {
                let slot = other == Self.external ? externalSlot : children[other].slot
                if let slot { readiness.table.addDependency(of: child.slot, on: slot) }
            }
        }
    }

    /// How it came here.
    var history: String { steps.map { "\($0)" }.joined(separator: ", ") }

    /// The children are over, and no worker is left.
    var isOver: Bool { hasStarted && onTheWay == 0 && children.allSatisfy { $0.stage == .ended } }
}

// What can happen.
extension ScheduleExplorer {
    /// One explorer for each step that can be next.
    func followers() -> [ScheduleExplorer] {
        possibleSteps().map { step in
            var explorer = self
            explorer.steps.append(step)
            explorer.take(step)
            explorer.violation = explorer.violation ?? explorer.problem
            return explorer
        }
    }

    private func possibleSteps() -> [Step] {
        var steps: [Step] = []
        if !hasStarted { steps.append(.begin) }
        if budget.cancellations > 0, !isCancelling { steps.append(.cancelling) }
        if isCancelling, !isCancelled { steps.append(.cancelled) }
        if budget.suspensions > 0, !readiness.places.isSuspended { steps.append(.suspend) }
        // A pause is ended at some time, unless there is nothing more to begin.
        if readiness.places.isSuspended, !hasEnded { steps.append(.resume) }
        steps += budget.limits.map { .limit($0) }
        if readiness.places.limit == 0, budget.limits.isEmpty, !hasEnded { steps.append(.limit(1)) }
        let open = children.indices.filter { !children[$0].stage.isOver }
        let isOpen = !hasStarted || !open.isEmpty
        if budget.additions > 0, isOpen { steps += [.add(dependsOn: nil)] + open.map { .add(dependsOn: $0) } }
        if externalSlot != nil {
            steps.append(.externalEnds)
            if budget.adoptions > 0, isOpen { steps.append(.externalJoins) }
        }
        let queueHasPlace = readiness.queueSettings == .immediate || hasSlot && !readiness.queueSettings.isSuspended
        if onTheWay > 0, queueHasPlace { steps.append(.workerComes) }
        for (index, child) in children.enumerated() {
            if budget.reports > 0, child.mayBeEnding { steps.append(.ending(index)) }
            let mayBeReleased = budget.releases > 0 && !child.ignoresDependencies && !isCancelling
            if mayBeReleased, child.stage == .added || child.stage == .waiting { steps.append(.release(index)) }
            switch child.stage {
            case .added:
                steps.append(hasStarted ? .registered(index) : .isFinished(index))
                let isLast = index == children.count - 1
                if hasStarted, budget.takenBack > 0, child.waitsFor.isEmpty, isLast { steps.append(.takeBack(index)) }
            case .starting:
                if !child.isEnding {
                    steps += [
                        .isWatched(index), .handedToQueue(index, isLast: false), .handedToQueue(index, isLast: true),
                    ]
                }
                steps += [.hasEnded(index, isLast: false), .hasEnded(index, isLast: true)]
            case .watched: steps += [.goesOn(index, isLast: false), .goesOn(index, isLast: true), .ends(index)]
            case .watchedEnded: steps += [.goesOn(index, isLast: false), .goesOn(index, isLast: true)]
            case .queued:
                if !child.isEnding, child.isReadyOnQueue { steps.append(.waitsOnQueue(index)) }
                if !child.isEnding, child.isHandedOver, child.isReadyOnQueue { steps.append(.handedBack(index)) }
                steps.append(.ends(index))
            case .alone: steps.append(.ends(index))
            case .waiting, .ended: break
            }
        }
        return steps
    }

    /// Whether there is a place for one more worker.
    var hasPlace: Bool { hasPlace(beside: queuedHere) }

    /// Whether the queue may start one more worker: those that it was handed may still be on their way to it.
    private var hasSlot: Bool { hasPlace(beside: 0) }

    private func hasPlace(beside queued: Int) -> Bool {
        if readiness.places.limit < 0 { return true }
        let places =
            isCancelled || hasEnded ? max(readiness.places.limit, 1) : readiness.places.limit - count(.alone) - queued
        return children.count(where: \.stage.isWorker) < places
    }

    private mutating func take(_ step: Step) {
        switch step {
        case .begin:
            hasStarted = true
            // They are asked again then.
            readiness.prepared()
            externalSlot = nil
            connect()
            for index in children.indices where children[index].stage == .added { becomeKnown(index) }
            readiness.started()
        case .cancelling:
            budget.cancellations -= 1
            isCancelling = true
            readiness.cancellationStarted()
            return
        case .cancelled:
            isCancelled = true
            readiness.cancelled()
        case .suspend:
            budget.suspensions -= 1
            readiness.places.isSuspended = true
        case .resume:
            readiness.places.isSuspended = false
        case .limit(let limit):
            budget.limits.removeAll { $0 == limit }
            readiness.places.limit = limit
        case .add(let other):
            budget.additions -= 1
            let slots = readiness.table.records.map(\.phase)
            var child = Child(slot: readiness.table.insert(.placeholder, phase: hasStarted ? .adding : .added))
            if let other {
                readiness.table.addDependency(of: child.slot, on: children[other].slot)
                child.waitsFor = [other]
            }
            if slots.contains(.free), readiness.table.records.count > slots.count { violation = "a slot stays free" }
            children.append(child)
            return
        case .externalEnds:
            if let slot = externalSlot { readiness.externalEnded(slot) }
            externalSlot = nil
            for index in children.indices { children[index].waitsFor.remove(Self.external) }
        case .externalJoins:
            budget.adoptions -= 1
            guard let slot = externalSlot else { return }
            externalSlot = nil
            readiness.adopted(slot, .placeholder)
            for index in children.indices where children[index].waitsFor.remove(Self.external) != nil {
                children[index].waitsFor.insert(children.count)
            }
            children.append(Child(slot: slot))
            return
        case .registered(let index):
            becomeKnown(index)
        case .takeBack(let index):
            budget.takenBack -= 1
            readiness.takenBack(children[index].slot)
            children.removeLast()
        case .release(let index):
            budget.releases -= 1
            children[index].ignoresDependencies = true
            readiness.ignoresDependencies(children[index].slot)
        case .isFinished(let index):
            end(index)
        case .workerComes:
            onTheWay -= 1
            let mayStart = readiness.places.workerStarted()
            takeNext(isLast: !mayStart, looksAtQueue: false)
        case .isWatched(let index):
            children[index].stage = .watched
            return
        case .goesOn(let index, let isLast):
            if children[index].stage == .watched { readiness.detached(children[index].slot) }
            children[index].stage = children[index].stage == .watched ? .alone : .ended
            takeNext(isLast: isLast)
        case .ending(let index):
            budget.reports -= 1
            children[index].isEnding = true
            readiness.ending(children[index].slot)
        case .ends(let index):
            let isWatched = children[index].stage == .watched
            let endedOnQueue = children[index].stage == .queued
            end(index)
            if isWatched { children[index].stage = .watchedEnded }
            return follow(endedOnQueue: endedOnQueue)
        case .hasEnded(let index, let isLast):
            end(index)
            takeNext(isLast: isLast)
        case .handedToQueue(let index, let isLast):
            readiness.handedToQueue(children[index].slot)
            children[index].stage = .queued
            takeNext(isLast: isLast)
            return follow(mayHandOver: false)
        case .handedBack(let index):
            readiness.handedBack(children[index].slot)
            children[index].stage = .waiting
            children[index].isHandedOver = false
            return follow(mayHandOver: false)
        case .waitsOnQueue(let index):
            readiness.waitsOnQueue(children[index].slot)
            children[index].isReadyOnQueue = false
        }
        follow()
    }

    /// What follows from each event.
    private mutating func follow(mayHandOver: Bool = true, endedOnQueue: Bool = false) {
        if mayHandOver { handOver() }
        if readiness.requestWorkerIfNeeded() { onTheWay += 1 }
        if endedOnQueue, onTheWay > 0, !readiness.isNextSynchronous { readiness.places.isKeptByQueue = true }
        if hasStarted, !hasEnded, readiness.table.remaining == 0 {
            hasEnded = true
            readiness.finished()
        }
    }

    /// The thread on which something has happened hands the next child over, if it may do so.
    private mutating func handOver() {
        let mayHandOver = !isCancelling && onTheWay == 0 && !readiness.places.isKeptByQueue
        let expected = next.flatMap { mayHandOver && isSynchronous($0) ? $0 : nil }
        let slot = readiness.handNextToQueue()?.slot
        if slot != expected.map({ children[$0].slot }) {
            violation = "slot \(String(describing: slot)) is handed over instead of \(String(describing: expected))"
        }
        guard slot != nil, let expected else { return }
        children[expected].stage = .queued
        children[expected].isHandedOver = true
    }

    /// Whether only a queue may start the child.
    private func isSynchronous(_ index: Int) -> Bool { index == 1 }

    private mutating func becomeKnown(_ index: Int) {
        children[index].stage = .waiting
        if isSynchronous(index) { readiness.table.records[children[index].slot].isSynchronous = true }
        readiness.registered(children[index].slot, priority: index == 2 ? .high : .normal)
    }

    private mutating func end(_ index: Int) {
        readiness.ended(children[index].slot)
        children[index].stage = .ended
        for other in children.indices { children[other].waitsFor.remove(index) }
        if children[index].waitsFor.remove(Self.external) != nil { stopWaiting() }
    }

    /// A child has ended, though the external dependency has not.
    private mutating func stopWaiting() {
        guard let slot = externalSlot, waitingForExternal == 0 else { return }
        readiness.externalEnded(slot)
        externalSlot = nil
    }

    var waitingForExternal: Int { children.count { $0.waitsFor.contains(Self.external) } }

    private mutating func takeNext(isLast: Bool, looksAtQueue: Bool = true) {
        if isLast || (looksAtQueue && !readiness.places.hasRoomForWorker) { return readiness.places.workerLeft() }
        let expected = next
        let slot = readiness.startNext()
        if slot != expected.map({ children[$0].slot }) {
            violation = "slot \(String(describing: slot)) is next instead of child \(String(describing: expected))"
        }
        guard slot != nil, let expected else { return readiness.places.workerLeft() }
        children[expected].stage = .starting
    }
}

extension Operation {
    /// Stands for every child: the state machine does not look at its operations.
    static let placeholder = Operation()
}
