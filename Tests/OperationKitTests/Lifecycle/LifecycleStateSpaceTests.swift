import OperationKitTestSupport

@testable import OperationKit

/// Walks through everything that can happen to a life, in every order, and checks the guarantees at each step.
@Suite("Lifecycle, every order of events", .serialized, .takesTurns, .hangGuard) struct LifecycleStateSpaceTests {
    @Test("The guarantees of a life hold in every order of events", arguments: Lifecycle.Ending.allCases)
    func everyOrder(ending: Lifecycle.Ending) {
        let first = StateSpaceExplorer(ending: ending)
        var seen: Set<String> = [first.identity]
        var frontier = [first]
        var steps = 0
        var ends: Set<String> = []
        while !frontier.isEmpty {
            var next: [StateSpaceExplorer] = []
            for explorer in frontier {
                let followers = explorer.followers()
                for follower in followers {
                    steps += 1
                    if let violation = follower.violation {
                        Issue.record("\(violation), after \(follower.history.joined(separator: ", "))")
                        return
                    }
                    if seen.insert(follower.identity).inserted { next.append(follower) }
                }
                if explorer.lifecycle.isFinished { ends.insert(explorer.lifecycle.stateText) }
                // Where nothing is owed any more, the life is over, not begun, or waits for its work.
                if explorer.owed.isEmpty, explorer.isStuck {
                    Issue.record("stuck, after \(explorer.history.joined(separator: ", "))")
                    return
                }
            }
            frontier = next
        }
        TestExtent.report("Lifecycle, \(ending): \(seen.count) states, \(steps) steps, ends: \(ends.sorted())")
        let own = ending == .afterChildren ? ["finished(second)"] : []
        #expect(ends == Set(["finished(success)", "finished(first)", "finished(reason)", "finished(cancelled)"] + own))
    }
}

/// A life with its surroundings: who owes it which event, and what it has led to so far.
private struct StateSpaceExplorer {
    var lifecycle: Lifecycle
    let ending: Lifecycle.Ending
    var owed: Set<Owed> = []
    var history: [String] = []
    var violation: String?

    var hasStarted = false
    private var accepted: String?
    private var mainRuns = 0
    private var hookRuns = 0
    private var markings = 0
    private var deliveries = 0
    private var outcome: String?
    private var childrenHaveFinished = false

    private var mayExecute = true

    /// Whether nothing can move it any more, though it is neither over, nor not begun, nor at work.
    var isStuck: Bool {
        switch lifecycle.state {
        case .pending: hasStarted
        case .executing(.passingGates): !owed.contains(.gates)
        case .executing, .finished: false
        case .draining: mainRuns == 0 || childrenHaveFinished
        case .starting, .finishing: true
        }
    }

    /// An action that was given and is not completed.
    enum Owed: Hashable { case announcement, gates, main, marking, draining, delivery }

    private enum Step: Equatable {
        case start, finish(TestError?), cancel(TestError?)
        case complete(Owed)
        case suspend, resume
    }

    init(ending: Lifecycle.Ending) {
        self.ending = ending
        lifecycle = Lifecycle(ending: ending)
    }

    var identity: String {
        "\(lifecycle) \(owed.map { "\($0)" }.sorted()) \(accepted ?? "-") \(mainRuns) \(hookRuns) \(markings) "
            + "\(deliveries) \(outcome ?? "-") \(childrenHaveFinished) \(hasStarted) \(mayExecute)"
    }

    /// One explorer for each thing that can happen now.
    func followers() -> [StateSpaceExplorer] {
        var steps: [Step] = [.start, .finish(nil), .finish(.first), .cancel(nil), .cancel(.reason)]
        steps += owed.map { .complete($0) }
        if owed.contains(.gates) { steps.append(.suspend) }
        if lifecycle.isWaiting { steps.append(.resume) }
        // The children of a composite that executes may finish at any time once `main()` was called.
        if ending == .afterChildren, mainRuns == 1, !childrenHaveFinished, !owed.contains(.draining) {
            steps.append(.complete(.draining))
        }
        return steps.map { step in
            var explorer = self
            explorer.take(step)
            return explorer
        }
    }

    private mutating func take(_ step: Step) {
        history.append("\(step)")
        let before = lifecycle
        switch step {
        case .start:
            if !hasStarted { mayExecute = !lifecycle.isCancelled }
            hasStarted = true
            perform(lifecycle.started())
        case .finish(let error):
            let (isAccepted, action) = lifecycle.finished(with: error.map { .failure($0) } ?? .success(()))
            if isAccepted {
                if accepted != nil { violation = "two finishes were accepted" }
                accepted = text(error)
            }
            perform(action)
        case .cancel(let reason):
            perform(lifecycle.cancelled(reason: reason))
        case .complete(let owed):
            self.owed.remove(owed)
            complete(owed)
        case .suspend:
            owed.remove(.gates)
            perform(lifecycle.gateClosed())
        case .resume:
            if !lifecycle.gateOpened() { violation = "a wait that goes on cannot end" }
            owe(.gates)
        }
        checkMonotony(before)
    }

    private mutating func complete(_ owed: Owed) {
        switch owed {
        case .announcement:
            perform(lifecycle.becameExecuting())
        case .gates:
            perform(lifecycle.gatesPassed())
        case .main:
            perform(lifecycle.mainReturned())
        case .marking:
            for action in lifecycle.superclassCancelled() { perform(action) }
        case .draining:
            childrenHaveFinished = true
            let own: TestError? = lifecycle.isCancelled ? nil : .second
            perform(lifecycle.drained(with: .failure(own ?? CancellationError() as any Error)))
        case .delivery:
            lifecycle.ended()
        }
    }

    private mutating func perform(_ action: Lifecycle.Action?) {
        switch action {
        case nil: break
        case .announceExecution: owe(.announcement)
        case .passGates: owe(.gates)
        case .runMain:
            mainRuns += 1
            if lifecycle.isCancelled { violation = "main() is called after a cancellation" }
            if mainRuns > 1 { violation = "main() is called twice" }
            owe(.main)
        case .callDidCancel:
            hookRuns += 1
            if hookRuns > 1 { violation = "the hook is called twice" }
            if owed.contains(.main) { violation = "the hook is called while main() is on the stack" }
            if mainRuns == 0 { violation = "the hook is called without main()" }
            if owed.contains(.marking) { violation = "the hook is called before isCancelled is true" }
            if owed.contains(.delivery) || lifecycle.isFinished { violation = "the hook is called after the end" }
        case .cancelSuperclass:
            markings += 1
            if markings > 1 { violation = "a cancellation takes effect twice" }
            owe(.marking)
        case .repeatSuperclassCancel:
            if !owed.contains(.marking) { violation = "marked again, though no thread is marking" }
        case .cancelChildren:
            if ending == .immediately { violation = "a leaf has no children" }
        case .drain:
            if ending == .immediately { violation = "a leaf has no children" }
            owe(.draining)
        case .complete:
            deliveries += 1
            if deliveries > 1 { violation = "the outcome is delivered twice" }
            if owed.contains(.marking) { violation = "the outcome is delivered while the cancellation is marked" }
            if case .finishing = lifecycle.state {} else { violation = "delivered in \(lifecycle.stateText)" }
            owe(.delivery)
        }
    }

    private mutating func owe(_ action: Owed) {
        if !owed.insert(action).inserted { violation = "\(action) is due twice" }
    }

    /// What may never go back, and what has to agree.
    private mutating func checkMonotony(_ before: Lifecycle) {
        if rank(lifecycle) < rank(before) { violation = "the state went back" }
        if before.isCancelled, !lifecycle.isCancelled { violation = "the cancellation was taken back" }
        if before.isExecuting, !lifecycle.isExecuting, !lifecycle.isFinished { violation = "isExecuting went back" }
        if lifecycle.isFinished || lifecycle.outcome != nil, !hasStarted { violation = "an end before the start" }
        if lifecycle.isFinished, deliveries != 1 || owed.contains(.delivery) {
            violation = "the end before the delivery"
        }
        if lifecycle.isFinished, owed.contains(.marking) { violation = "the end while the cancellation is marked" }
        if lifecycle.isExecuting, lifecycle.isFinished { violation = "executing and finished" }
        if lifecycle.isExecuting, !mayExecute { violation = "executing, though cancelled before the start" }
        if lifecycle.isExecuting, mainRuns == 0, accepted == nil, !lifecycle.isCancelled, !owed.contains(.gates),
            !lifecycle.isWaiting
        {
            violation = "executing without main(), an outcome or a cancellation"
        }
        guard let now = lifecycle.outcome else { return }
        let new = text(now.error)
        if let outcome, outcome != new { violation = "the outcome changed from \(outcome) to \(new)" }
        outcome = new
        if let accepted, accepted != new { violation = "\(accepted) was accepted, \(new) came" }
        if new == "cancelled" || new == "reason", !lifecycle.isCancelled { violation = "\(new), but not cancelled" }
        if new == "cancelled", lifecycle.cancellationReason != nil { violation = "the reason was lost" }
    }

    private func rank(_ lifecycle: Lifecycle) -> Int {
        switch lifecycle.state {
        case .pending: 0
        case .starting: 1
        case .executing(.passingGates), .executing(.waiting): 2
        case .executing(.onStack): 3
        case .executing(.returned): 4
        case .draining: 5
        case .finishing: 6
        case .finished: 7
        }
    }
}

@Suite("Cancellation handlers", .hangGuard) struct CancellationHandlersTests {
    private enum Event: CaseIterable { case first, second, cancelled, ended }

    /// Whether a handler is called: if it is registered, and the work cancelled, before the end.
    private static func isCalled(_ handler: Event, in order: [Event]) -> Bool {
        let lived = order.prefix { $0 != .ended }
        return lived.contains(handler) && lived.contains(.cancelled)
    }

    @Test("In every order, each handler that is due is called once, in the order of registration")
    func everyOrder() {
        let orders = OperationKitTestSupport.everyOrder(of: Event.self)
        #expect(orders.count == 65)
        for order in orders {
            var handlers = CancellationHandlers()
            let called = EventLog()
            for event in order {
                switch event {
                case .first, .second:
                    let handler: CancellationHandlers.Handler = { called.add("\(event)") }
                    if handlers.added(handler) { handler() }
                case .cancelled:
                    while let handler = handlers.cancelled() { handler() }
                case .ended:
                    _ = handlers.ended()
                    #expect(handlers.ended().isEmpty)
                }
            }
            let expected = order.filter { [.first, .second].contains($0) && Self.isCalled($0, in: order) }
            #expect(called.events == expected.map { "\($0)" }, "\(order)")
        }
    }
}
