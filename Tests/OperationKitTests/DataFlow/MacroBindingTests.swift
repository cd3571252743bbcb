import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Bindings and requirements between the steps of one macro, besides the inputs that the macro hands over.
@Suite("Bindings between steps", .hangGuard) struct MacroBindingTests {
    @Test("A step takes from the step before it what a binding says", arguments: [false, true])
    func aBindingToTheStepBefore(isBoundFirst: Bool) async throws {
        let first = Step.increment("first")
        let second = Step.increment("second")
        let log = EventLog()
        let bind = {
            second.bind(\.name, to: first, \.name)
            second.requireSuccess(of: first)
            second.bind(to: first) { _, first in log.add("\(first.output ?? -1)") }
        }
        if isBoundFirst { bind() }
        let macro = MacroOperation(first).then(second)
        if !isBoundFirst { bind() }
        #expect(try await OperationQueue().run(macro.with(input: 0)) == 2)
        #expect(second.name == "first" && log.events == ["1"])
    }

    @Test("A step takes from several steps before it what bindings say")
    func bindingsToStepsThatAreJoined() async throws {
        let (first, left, right) = (Step.increment("first"), Step.increment("left"), Step.increment("right"))
        let log = EventLog()
        let sum = IOBlockOperation<(Int, Int), Int>(name: "sum") { $0 + $1 }
        let last = IOBlockOperation<Int, Int>(name: "last") { $0 }
        let macro = MacroOperation(first).then(concurrently: left, right).then(sum, inputFrom: left, right)
            .then(last, inputFrom: first)
        for source in [first, left, right] {
            sum.bind(to: source) { _, source in log.add(source.name ?? "") }
            last.requireSuccess(of: source)
        }
        last.bind(to: sum) { last, sum in last.input = sum.output }
        #expect(try await OperationQueue().run(macro.with(input: 0)) == 4)
        #expect(log.events == ["first", "left", "right"])
    }

    @Test("A step that has started holds no step before it")
    func stepsAreReleasedAsTheyFinish() async throws {
        let tracker = LeakTracker()
        let began = Gate()
        let proceed = Gate()
        let log = EventLog()
        let last = IOTaskOperation<Int, Int>(name: "last") { input in
            began.open()
            await proceed.opened()
            return input
        }
        let macro = {
            let first = tracker.track(Step.increment("first"), "first")
            let macro = MacroOperation(first).then(last).with(input: 0)
            last.bind(to: first) { _, first in log.add(first.name ?? "") }
            return macro
        }()
        macro.start()
        await began.opened()
        await tracker.expectAllReleased()
        proceed.open()
        #expect(try await macro.value == 1 && log.events == ["first"])
    }
}
