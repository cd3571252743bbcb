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
                if explorer.lifecycle.isFinished { ends.insert(text(explorer.lifecycle.outcome?.error)) }
                // Where nothing is owed any more, the life is over, not begun, or waits for its work.
                if explorer.owed.isEmpty, explorer.isStuck {
                    Issue.record("stuck, after \(explorer.history.joined(separator: ", "))")
                    return
                }
            }
            frontier = next
        }
        TestExtent.report("Lifecycle, \(ending): \(seen.count) states, \(steps) steps, ends: \(ends.sorted())")
        let own = ending == .afterChildren ? ["second"] : []
        #expect(ends == Set(["success", "first", "reason", "cancelled"] + own))
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
    private var announced = false
    /// Whether a cancellation has taken effect while the work was on.
    private var owesHook = false

    /// Whether nothing can move it any more, though it is neither over, nor not begun, nor at work.
    var isStuck: Bool {
        switch lifecycle.state {
        case .pending: hasStarted
        case .executing(.passingGates): !owed.contains(.gates)
        case .executing(.waiting): lifecycle.isCancelled
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
            + "\(deliveries) \(outcome ?? "-") \(childrenHaveFinished) \(hasStarted) \(mayExecute) \(announced) \(owesHook)"
    }

    func followers() -> [StateSpaceExplorer] {
        var steps: [Step] = [.start, .finish(nil), .finish(.first), .cancel(nil), .cancel(.reason), .resume]
        steps += owed.map { .complete($0) }
        if owed.contains(.gates) { steps.append(.suspend) }
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
        let hasChildren = ending == .afterChildren && rank(before) < 6
        switch step {
        case .start:
            if !hasStarted { mayExecute = !lifecycle.isCancelled }
            hasStarted = true
            perform(lifecycle.started())
        case .finish(let error):
            let (isAccepted, action) = lifecycle.finished(with: error.map { .failure($0) } ?? .success(()))
            if isAccepted != (accepted == nil && rank(before) < 6) { violation = "not the first finish is accepted" }
            if isAccepted { accepted = text(error) }
            let isDraining = rank(before) == 5
            if isAccepted, hasChildren, !isDraining, action == nil { violation = "finish() leaves the children alone" }
            perform(action)
        case .cancel(let reason):
            let action = lifecycle.cancelled(reason: reason)
            if hasChildren, action == nil { violation = "cancel() returns before all children are cancelled" }
            if !before.isCancelled, ending == .afterWork, rank(before) == 5, action != .cancelSuperclass {
                violation = "work that goes on after its end was asked for cannot be cancelled"
            }
            if action == .cancelSuperclass, rank(before) == 4 { owesHook = true }
            perform(action)
        case .complete(let owed):
            self.owed.remove(owed)
            complete(owed)
        case .suspend:
            owed.remove(.gates)
            perform(lifecycle.gateClosed())
        case .resume:
            let isWaiting = lifecycle.isWaiting
            if lifecycle.gateOpened() != isWaiting { violation = "a wait that goes on cannot end, or another can" }
            if isWaiting { owe(.gates) }
        }
        checkMonotony(before)
    }

    private mutating func complete(_ owed: Owed) {
        switch owed {
        case .announcement:
            announced = true
            perform(lifecycle.becameExecuting())
        case .gates:
            perform(lifecycle.gatesPassed())
        case .main:
            perform(lifecycle.mainReturned())
        case .marking:
            let actions = lifecycle.superclassCancelled()
            if ending == .afterChildren,
                !actions.contains(where: { [.cancelChildren, .drain, .complete].contains($0) })
            {
                violation = "the children are not cancelled"
            }
            for action in actions { perform(action) }
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
        case .announceExecution:
            if !mayExecute { violation = "executing, though cancelled before the start" }
            owe(.announcement)
        case .passGates:
            if lifecycle.isCancelled { violation = "gates are passed after a cancellation" }
            owe(.gates)
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
            if rank(lifecycle) > 5 || rank(lifecycle) == 5 && ending != .afterWork {
                violation = "a cancellation takes effect after the end was decided"
            }
            owe(.marking)
        case .repeatSuperclassCancel:
            if !owed.contains(.marking) { violation = "marked again, though no thread is marking" }
        case .cancelChildren:
            if ending != .afterChildren { violation = "a leaf has no children" }
        case .drain:
            if ending == .immediately { violation = "a leaf has no children" }
            owe(.draining)
        case .complete:
            deliveries += 1
            if deliveries > 1 { violation = "the outcome is delivered twice" }
            if owed.contains(.marking) { violation = "the outcome is delivered while the cancellation is marked" }
            if ending != .immediately, !childrenHaveFinished { violation = "the end before that of the children" }
            if owesHook, hookRuns == 0 { violation = "the hook was not called" }
            if rank(lifecycle) != 6 { violation = "delivered in \(lifecycle.state)" }
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
        if lifecycle.isFinished || lifecycle.outcome != nil, !hasStarted { violation = "an end before the start" }
        if lifecycle.isFinished, deliveries != 1 || owed.contains(.delivery) {
            violation = "the end before the delivery"
        }
        if lifecycle.isFinished, owed.contains(.marking) { violation = "the end while the cancellation is marked" }
        if lifecycle.isExecuting != (announced && !lifecycle.isFinished) { violation = "executing at the wrong time" }
        if lifecycle.isPending == hasStarted { violation = "pending and started" }
        let passes = owed.contains(.gates) && accepted == nil && !lifecycle.isCancelled
        if lifecycle.isPassingGates != passes { violation = "passing gates, or not, at the wrong time" }
        if lifecycle.isWorking != (2...4).contains(rank(lifecycle)) { violation = "working at the wrong time" }
        if lifecycle.isWorking, lifecycle.isBeforeMain != (mainRuns == 0) { violation = "not what main() knows" }
        if lifecycle.acceptsOutcome != (accepted == nil && rank(lifecycle) < 6) { violation = "accepts the wrong end" }
        if lifecycle.outcome != nil, owed.contains(.marking) { violation = "an outcome that is held back" }
        if rank(lifecycle) == 4, lifecycle.isCancelled, !owed.contains(.marking), hookRuns == 0 {
            violation = "the hook is not called for work that is cancelled"
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
            // Due are those that are registered before the end, if the work is cancelled before it.
            let lived = order.prefix { $0 != .ended }
            let expected = lived.contains(.cancelled) ? lived.filter { $0 != .cancelled } : []
            #expect(called.events == expected.map { "\($0)" }, "\(order)")
        }
    }
}

#if os(macOS) || os(Linux)
/// What the callers never do.
@Suite("Lifecycle, impossible events", .hangGuard) struct LifecycleTrapTests {
    @Test(
        "An event that is impossible in the state of a life traps, and the trap names both",
        arguments: [
            "becameExecuting", "started becameExecuting becameExecuting", "mainReturned", "drained", "marked",
            "started becameExecuting gatesPassed gatesPassed", "started becameExecuting gateClosed gatesPassed",
            "started becameExecuting mainReturned", "started becameExecuting gatesPassed mainReturned mainReturned",
            "started becameExecuting gatesPassed drained drained", "started becameExecuting ended",
            "started becameExecuting succeeded ended ended", "started gateClosed",
        ])
    func trap(events: String) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [events] in
            let steps: [Substring: (inout Lifecycle) -> Void] = [
                "started": { _ = $0.started() }, "becameExecuting": { _ = $0.becameExecuting() },
                "gatesPassed": { _ = $0.gatesPassed() }, "gateClosed": { _ = $0.gateClosed() },
                "mainReturned": { _ = $0.mainReturned() }, "succeeded": { _ = $0.finished(with: .success(())) },
                "drained": { _ = $0.drained(with: .success(())) }, "ended": { $0.ended() },
                "marked": { _ = $0.superclassCancelled() },
            ]
            var lifecycle = Lifecycle(ending: events.hasSuffix("drained") ? .afterChildren : .immediately)
            for event in events.split(separator: " ") { steps[event]?(&lifecycle) }
        }
        #if DEBUG
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("OperationKit: event ") && message.contains(" is impossible in state "))
        #endif
    }
}
#endif
