import Testing

@testable import OperationKitProcess

@Suite("States of a program")
struct ChildProcessStateTests {
    private typealias State = ChildProcessState

    @Test("A program is over when it has exited and its pipes are at their end, in either order")
    func bothOrders() {
        var state = State(openPipes: 2)
        state.exited()
        #expect(state.advance(to: .zero, isHandlerBusy: false) == [.reap])
        state.pipeClosed()
        #expect(state.advance(to: .zero, isHandlerBusy: false).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .zero, isHandlerBusy: false) == [.end])
        #expect(state.advance(to: .seconds(9), isHandlerBusy: false).isEmpty)

        state = State(openPipes: 1)
        state.pipeClosed()
        #expect(state.advance(to: .zero, isHandlerBusy: false).isEmpty)
        state.exited()
        #expect(state.advance(to: .zero, isHandlerBusy: false) == [.reap, .end])
    }

    @Test("Pipes that others hold open are given up once nothing has come for a moment")
    func patience() {
        var state = State(openPipes: 1)
        state.exited()
        #expect(state.advance(to: .zero, isHandlerBusy: false) == [.reap])
        #expect(state.deadline(isHandlerBusy: false) == State.patience)
        state.dataMoved(at: .milliseconds(90))
        #expect(state.advance(to: .milliseconds(150), isHandlerBusy: false).isEmpty)
        #expect(state.advance(to: .milliseconds(190), isHandlerBusy: false) == [.closePipes, .end])
    }

    @Test("A handler that is busy holds up the end, without a deadline")
    func busyHandler() {
        var state = State(openPipes: 1)
        state.exited()
        #expect(state.advance(to: .zero, isHandlerBusy: true) == [.reap])
        #expect(state.deadline(isHandlerBusy: true) == nil)
        #expect(state.advance(to: .seconds(9), isHandlerBusy: true).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .seconds(9), isHandlerBusy: true).isEmpty)
        #expect(state.advance(to: .seconds(9), isHandlerBusy: false) == [.end])
    }

    @Test("A request to end is followed by the end of the group after the grace period, once")
    func termination() {
        var state = State(openPipes: 1)
        #expect(state.terminationRequested(gracePeriod: .seconds(2), at: .seconds(1)) == [.terminate])
        #expect(state.terminationRequested(gracePeriod: .zero, at: .seconds(1)).isEmpty)
        #expect(state.deadline(isHandlerBusy: false) == .seconds(3))
        #expect(state.advance(to: .seconds(2), isHandlerBusy: false).isEmpty)
        #expect(state.advance(to: .seconds(3), isHandlerBusy: false) == [.kill])
        #expect(state.advance(to: .seconds(4), isHandlerBusy: false).isEmpty)
        state.exited()
        #expect(state.advance(to: .seconds(4), isHandlerBusy: false) == [.reap])
    }

    @Test("A program that was asked to end is waited for only when no other one can get its signals")
    func signalsOfTheGroup() {
        var state = State(openPipes: 1)
        _ = state.terminationRequested(gracePeriod: .seconds(2), at: .zero)
        state.exited()
        #expect(state.isAlive)
        #expect(state.advance(to: .seconds(1), isHandlerBusy: false).isEmpty)
        #expect(state.advance(to: .seconds(2), isHandlerBusy: false) == [.kill, .reap])
        #expect(!state.isAlive)
        #expect(state.terminationRequested(gracePeriod: .zero, at: .seconds(3)).isEmpty)
    }

    @Test("A program that was asked to end and whose pipes are at their end is over")
    func cleanTermination() {
        var state = State(openPipes: 1)
        _ = state.terminationRequested(gracePeriod: .seconds(2), at: .zero)
        state.pipeClosed()
        state.exited()
        #expect(state.advance(to: .zero, isHandlerBusy: false) == [.reap, .end])
    }

    @Test("Grace periods of any length are kept", arguments: [Duration.seconds(Int64.max), .seconds(Int64.min), .zero])
    func extremes(_ gracePeriod: Duration) {
        var state = State(openPipes: 0)
        let expected: [State.Action] = gracePeriod > .zero ? [.terminate] : [.kill]
        #expect(state.terminationRequested(gracePeriod: gracePeriod, at: .seconds(1)) == expected)
        #expect(state.advance(to: .seconds(1_000_000), isHandlerBusy: false).isEmpty)
    }

    @Test("Lines are split at line breaks, and long ones are cut")
    func splitter() {
        var splitter = LineSplitter()
        #expect(splitter.append(Array("one\r\ntw".utf8)) == ["one"])
        #expect(splitter.append(Array("o\n\nthree".utf8)) == ["two", ""])
        #expect(splitter.end() == "three")
        #expect(splitter.end() == nil)
        let long = [UInt8](repeating: 97, count: LineSplitter.longestLine + 1)
        #expect(splitter.append(long).map(\.count) == [LineSplitter.longestLine])
        #expect(splitter.end() == "a")
    }
}
