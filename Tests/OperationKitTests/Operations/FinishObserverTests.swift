import OperationKitTestSupport

@testable import OperationKit

@Suite("FinishObserver", .hangGuard) struct FinishObserverTests {
    @Test(
        "An observer reports the end of an operation of any class once, also one that came before it",
        arguments: [ChildKind.asynchronous, .throwing, .block, .foreign], [false, true])
    func reportsEnd(kind: ChildKind, isEarlier: Bool) async {
        let (reported, log) = (Gate(), EventLog())
        let operation = kind.make { log.add("work") }
        if isEarlier {
            operation.start()
            await eventually("not ended") { operation.isFinished }
        }
        FinishObserver(operation) {
            log.add("reported")
            reported.open()
        }
        if !isEarlier { operation.start() }
        await reported.opened()
        #expect(log.events == ["work", "reported"])
    }

    @Test("An observer that was ended reports nothing") func endsBefore() {
        let operation = ScriptedOperation()
        let watch = FinishObserver(operation) { Issue.record("It is reported.") }
        watch.end()
        operation.start()
        #expect(operation.isFinished)
    }

    private final class Observer: FinishObserving {
        let number: Int
        init(_ number: Int) { self.number = number }
        func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline) {}
    }

    private func numbers(_ observers: [any FinishObserving]) -> [Int] {
        observers.compactMap { ($0 as? Observer)?.number }
    }

    @Test("Observers come out once and in order, unless they were removed and replaced", arguments: 0...4)
    func order(count: Int) {
        let all = (0..<count).map { Observer($0) }
        for removed in 0...count {
            var observers = FinishObservers()
            for observer in all + all { observers.add(observer) }
            #expect(observers.isEmpty == (count == 0))
            if removed < count {
                #expect(observers.remove(all[removed]) === all[removed] && observers.remove(all[removed]) == nil)
                observers.add(Observer(count))
                #expect(Set(numbers(observers.removeAll())) == Set(0...count).subtracting([removed]))
            } else {
                #expect(numbers(observers.removeAll()) == Array(0..<count))
            }
            #expect(observers.isEmpty && observers.removeAll().isEmpty)
        }
    }

    @Test("Adding and removing do not depend on how many there are") func cost() {
        // Quadratic cost would take a minute here, which the time limit of the suite does not allow.
        var observers = FinishObservers()
        let all = (0..<60_000).map { Observer($0) }
        for observer in all { observers.add(observer) }
        for observer in all { _ = observers.remove(observer) }
        #expect(observers.isEmpty)
    }

    private enum Event: CaseIterable { case registered, cancelled, finished }

    @Test("In every order of events a continuation is resumed once, by the first one") func everyOrder() async {
        for order in OperationKitTestSupport.everyOrder(of: Event.self) where order.contains(.registered) {
            let (operation, waiter) = (AsyncOperation(), TaskWaiter())
            // A cancellation only counts while the operation is not finished.
            let decisive = order.first { $0 != .registered }
            let isFinished = await withCheckedContinuation { continuation in
                for event in order {
                    switch event {
                    case .registered: operation.resume(continuation, by: waiter)
                    case .cancelled: operation.cancelWait(waiter)
                    case .finished: operation.start()
                    }
                }
                #expect(operation.isAwaited == (decisive == nil), "\(order)")
                if decisive == nil { operation.start() }
            }
            #expect(isFinished == (decisive != .cancelled), "\(order)")
            #expect(!operation.isAwaited, "\(order)")
        }
    }

    @Test("A task that waits goes on after all others were told, whichever came first") func order() {
        let (waiter, other) = (TaskWaiter(), FinishObserver(AsyncOperation()) {})
        for added in [[waiter, other], [other, waiter]] as [[any FinishObserving]] {
            var observers = FinishObservers()
            for observer in added { observers.add(observer) }
            #expect(observers.removeAll().map { $0 === waiter } == [false, true])
        }
        other.end()
    }
}
