import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("Observation state") struct ObservationStateTests {
    /// What can happen to the state of one operation, in any order.
    private enum Step: CaseIterable {
        /// An event that is not the end.
        case event
        case end
        /// The thread that delivers the current event is back from the observers.
        case delivered
        case childDeferred, childDelivered
    }

    /// The state, and what a reader of it must know by itself.
    private struct Model {
        var state = ObservationState(id: OperationID(1))
        var happened: [String] = []
        var delivered: [String] = []
        var deferredChildren = 0
        var isDelivering = false
        var hasEnded = false

        /// - Returns: Whether the step is possible here.
        mutating func perform(_ step: Step) -> Bool {
            switch step {
            case .event:
                let name = hasEnded ? "late" : "\(happened.count)"
                happen(.waiting(for: name), name)
            case .end:
                happen(.finished(error: nil), "end")
                hasEnded = true
            case .delivered:
                guard isDelivering, let current = state.current else { return false }
                delivered.append(current.name)
                isDelivering = state.delivered()
            case .childDeferred:
                // A composite ends after its children have.
                guard !hasEnded else { return false }
                deferredChildren += 1
                state.childEndDeferred()
            case .childDelivered:
                guard deferredChildren > 0 else { return false }
                deferredChildren -= 1
                begins(state.childEndDelivered())
            }
            return true
        }

        private mutating func happen(_ kind: OperationEvent.Kind, _ name: String) {
            if !hasEnded { happened.append(name) }
            begins(state.happened(kind, at: 0))
        }

        private mutating func begins(_ begins: Bool) {
            if begins { #expect(!isDelivering, "two threads deliver") }
            isDelivering = isDelivering || begins
        }

        func check() {
            #expect((state.current != nil) == isDelivering)
            #expect(delivered == Array(happened.prefix(delivered.count)), "not in order")
            if let current = state.current { #expect(current.name == happened[delivered.count]) }
            let isEndHeld = deferredChildren > 0 && happened.count == delivered.count + 1 && hasEnded
            #expect(isDelivering || delivered == happened || isEndHeld, "something was left behind")
            if delivered.last == "end" { #expect(deferredChildren == 0, "the end came before that of a child") }
        }
    }

    @Test("Every order of events, deliveries and ends of children delivers each event once, in order, and the end last")
    func allOrders() {
        var count = 0
        func explore(_ model: Model, _ depth: Int) {
            count += 1
            model.check()
            if depth == 0 { return }
            for step in Step.allCases {
                var next = model
                if next.perform(step) { explore(next, depth - 1) }
            }
        }
        explore(Model(), TestExtent.choose(7, long: 9))
        #expect(count > 5_000)
    }

    @Test("An observer is added once to an operation, and stays there if it is inherited, too") func sameObserver() {
        final class Observer: OperationObserver {
            func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {}
        }
        let (first, second) = (Observer(), Observer())
        var state = ObservationState(id: OperationID(1))
        #expect(state.knownObservers == nil)
        let own = ObserverRegistration(first)
        let added = [state.add(own, of: first).isAdded, state.add(ObserverRegistration(first), of: first).isAdded]
        #expect(added == [true, false])
        let inherited = [ObserverRegistration(second), ObserverRegistration(first)]
        let outer = ScopedObservers(scope: ObserverScope(), registrations: inherited)
        let all = state.inherit(outer, isComposite: false).all?.registrations
        #expect(all?.map { $0.isOf(first) } == [false, true, true])
        #expect(state.knownObservers?.count == 3)
        let removed = [state.remove(first).removed, state.remove(first).removed]
        #expect(removed[0] === own && removed[1] == nil && state.knownObservers == nil)
    }

    @Test("What is known of observers ends with the scope that it was derived from, at any depth, and only then")
    func scopes() throws {
        let root = ObserverScope()
        var outer = ScopedObservers(scope: root, registrations: [])
        var states: [ObservationState] = []
        for number in 0..<50 {
            states.append(ObservationState(id: OperationID(UInt64(number))))
            let found = states[number].inherit(outer, isComposite: number != 49).all
            outer = try #require(found)
        }
        #expect(states.allSatisfy { $0.knownObservers != nil })
        _ = states[20].forgetObservers()
        #expect(states.map { $0.knownObservers != nil } == (0..<50).map { $0 < 20 })
        let stale = states[21].inherit(outer, isComposite: true).all
        #expect(stale == nil, "The scope that it is derived from has ended")
        root.end()
        #expect(states.allSatisfy { $0.knownObservers == nil } && ObserverRegistry.makeScope(in: root) == nil)
    }

    @Test("What was found for this moment only is not known the next time") func unscoped() {
        final class Observer: OperationObserver {
            func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {}
        }
        var state = ObservationState(id: OperationID(1))
        let outer = ScopedObservers(scope: nil, registrations: [ObserverRegistration(Observer())])
        let found = state.inherit(outer, isComposite: true).all
        #expect(found?.registrations.count == 1 && found?.scope == nil && state.knownObservers == nil)
    }

    @Test("Scopes that have ended are not kept by the one that they were derived from") func endedScopes() {
        let root = ObserverScope()
        weak var first: ObserverScope?
        for number in 0..<100 {
            let scope = ObserverRegistry.makeScope(in: root)
            if number == 0 { first = scope }
            if let scope { ObserverRegistry.end(scope) }
        }
        #expect(first == nil && root.isCurrent)
    }

    @Test("A registration that has ended has no observer, and does not keep it alive") func endedRegistration() {
        final class Observer: OperationObserver {
            func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {}
        }
        var observer: Observer? = Observer()
        weak let known = observer
        let registration = observer.map { ObserverRegistration($0) }
        observer = nil
        #expect(known != nil && registration?.observer === known)
        registration?.end()
        #expect(known == nil && registration?.observer == nil)
    }

    @Test("A finished operation takes no observer, and has released its own") func afterTheEnd() {
        final class Observer: OperationObserver {
            func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {}
        }
        var state = ObservationState(id: OperationID(1))
        let (first, second) = (Observer(), Observer())
        _ = state.add(ObserverRegistration(first), of: first)
        let isDue = state.happened(.finished(error: nil), at: 0)
        #expect(isDue)
        let isAdded = state.add(ObserverRegistration(second), of: second).isAdded
        let released = state.releaseObservers()
        #expect(!isAdded && released.own.count == 1 && state.own.isEmpty)
    }

    @Test("A hold that is set after the delivery does not hold anything") func holds() {
        let composite = AsyncOperation()
        let (early, late) = (DeliveryHold(), DeliveryHold())
        #expect(early.hold(composite) && early.delivered() === composite)
        #expect(late.delivered() == nil && !late.hold(composite))
    }
}

extension ObservationState.Pending {
    fileprivate var name: String {
        switch kind {
        case .waiting(let name): name
        case .finished: "end"
        case .added, .started, .running, .cancelled, .retrying: "unexpected"
        }
    }
}
