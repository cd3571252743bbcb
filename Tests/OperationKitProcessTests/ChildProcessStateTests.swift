import Foundation
import Testing

@testable import OperationKitProcess

@Suite("States of a program")
struct ChildProcessStateTests {
    private typealias State = ChildProcessState

    @Test("A program is over when it has exited and its pipes are at their end, in either order")
    func bothOrders() {
        var state = State(openPipes: 2)
        state.exited()
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .zero, isBusy: false) == [.end])
        #expect(state.advance(to: .seconds(9), isBusy: false).isEmpty)

        state = State(openPipes: 1)
        state.pipeClosed()
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        state.exited()
        #expect(state.advance(to: .zero, isBusy: false) == [.end])
    }

    @Test("Pipes that others hold open are given up after a moment, whatever comes, but not before all was taken")
    func patience() {
        var state = State(openPipes: 1)
        state.exited()
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        #expect(state.deadline(isBusy: false) == State.patience)
        #expect(state.advance(to: .milliseconds(99), isBusy: false).isEmpty)
        #expect(!state.readsOnlyRest(at: .milliseconds(99)) && state.readsOnlyRest(at: .milliseconds(100)))
        #expect(state.advance(to: .milliseconds(150), isBusy: true).isEmpty)
        #expect(state.advance(to: .milliseconds(150), isBusy: false) == [.closePipes, .end])
    }

    @Test("A handler that is busy holds up the end, without a deadline")
    func busyHandler() {
        var state = State(openPipes: 1)
        state.exited()
        #expect(state.advance(to: .zero, isBusy: true).isEmpty)
        #expect(state.deadline(isBusy: true) == nil)
        #expect(state.advance(to: .seconds(9), isBusy: true).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .seconds(9), isBusy: true).isEmpty)
        #expect(state.advance(to: .seconds(9), isBusy: false) == [.end])
    }

    @Test("A request to end is followed by the end of the group after the grace period, once")
    func termination() {
        var state = State(openPipes: 1)
        #expect(state.terminationRequested(gracePeriod: .seconds(2), at: .seconds(1)).isEmpty)
        #expect(state.terminationRequested(gracePeriod: .zero, at: .seconds(1)).isEmpty)
        #expect(state.deadline(isBusy: false) == .seconds(3))
        #expect(state.advance(to: .seconds(2), isBusy: false).isEmpty)
        #expect(state.advance(to: .seconds(3), isBusy: false) == [.kill])
        #expect(state.advance(to: .seconds(4), isBusy: false).isEmpty)
        state.exited()
        #expect(state.advance(to: .seconds(4), isBusy: false).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .seconds(4), isBusy: false) == [.end])
    }

    @Test("A program that was asked to end is waited for only when no other one can get its signals")
    func signalsOfTheGroup() {
        var state = State(openPipes: 1)
        _ = state.terminationRequested(gracePeriod: .seconds(2), at: .zero)
        state.exited()
        #expect(state.isAlive && state.awaitsGroup)
        state.pipeClosed()
        #expect(state.advance(to: .seconds(1), isBusy: false).isEmpty)
        #expect(state.advance(to: .seconds(2), isBusy: false) == [.kill])
        #expect(state.awaitsGroup && state.deadline(isBusy: false) == .seconds(2) + State.patience)
        var deaf = state
        #expect(deaf.advance(to: .seconds(2) + State.patience, isBusy: false) == [.end])
        state.groupEnded()
        #expect(state.advance(to: .seconds(2), isBusy: false) == [.end])
        #expect(!state.isAlive && !state.awaitsGroup)
        #expect(state.terminationRequested(gracePeriod: .zero, at: .seconds(3)).isEmpty)
    }

    @Test("A program that was asked to end, and with it its group, is over when its pipes are at their end")
    func cleanTermination() {
        var state = State(openPipes: 1)
        _ = state.terminationRequested(gracePeriod: .seconds(2), at: .zero)
        state.groupEnded()
        #expect(state.awaitsExit)
        state.exited()
        state.groupEnded()
        #expect(state.deadline(isBusy: false) == nil)
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        state.pipeClosed()
        #expect(state.advance(to: .zero, isBusy: false) == [.end])
    }

    @Test("A request to end that comes after the exit reaches the group, for which the end waits")
    func terminationAfterExit() {
        var state = State(openPipes: 1)
        state.exited()
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        #expect(state.terminationRequested(gracePeriod: .seconds(2), at: .zero).isEmpty)
        #expect(state.awaitsGroup && state.deadline(isBusy: false) == .seconds(2))
        // The pipes are read as long as the group runs: their ends may tell of its end.
        #expect(state.advance(to: .seconds(1), isBusy: false).isEmpty && !state.readsOnlyRest(at: .seconds(1)))
        state.pipeClosed()
        #expect(state.advance(to: .seconds(1), isBusy: false).isEmpty)
        state.groupEnded()
        #expect(state.advance(to: .seconds(1), isBusy: false) == [.end])
    }

    @Test("A request to end without a grace period that comes after the exit ends the group")
    func killAfterExit() {
        var state = State(openPipes: 1)
        state.exited()
        #expect(state.advance(to: .zero, isBusy: false).isEmpty)
        #expect(state.terminationRequested(gracePeriod: .zero, at: .zero) == [.kill])
        #expect(state.awaitsGroup)
        #expect(state.advance(to: .seconds(1), isBusy: false).isEmpty)
        #expect(state.deadline(isBusy: false) == .seconds(1) + State.patience)
        #expect(state.advance(to: .seconds(2), isBusy: false) == [.closePipes, .end])
        #expect(state.terminationRequested(gracePeriod: .zero, at: .seconds(2)).isEmpty)
    }

    @Test("Grace periods of any length are kept", arguments: [Duration.seconds(Int64.max), .seconds(Int64.min), .zero])
    func extremes(_ gracePeriod: Duration) {
        var state = State(openPipes: 0)
        let expected: [State.Action] = gracePeriod > .zero ? [] : [.kill]
        #expect(state.terminationRequested(gracePeriod: gracePeriod, at: .seconds(1)) == expected)
        #expect(state.advance(to: .seconds(1_000_000), isBusy: false).isEmpty)
    }

    @Test("Lines are split at line breaks, and long ones are cut")
    func splitter() {
        let splitter = LineSplitter()
        #expect(splitter.append(Data("one\r\ntw".utf8)) == ["one"])
        #expect(splitter.append(Data("o\n\nthree".utf8)) == ["two", ""])
        #expect(splitter.end() == "three")
        #expect(splitter.end() == nil)
        let long = Data(repeating: 97, count: LineSplitter.longestLine + 1)
        #expect(splitter.append(long).map(\.count) == [LineSplitter.longestLine])
        #expect(splitter.end() == "a")
    }

    /// Characters around the limit, as they come in one piece or in two, and the parts that are to be seen of the line.
    @Test(
        "A long line is cut at a character, and the line break right after a part is no line",
        arguments: [
            (before: 1, "é", parts: [-1, 2]), (before: 3, "👍", parts: [-3, 4]), (before: 4, "👍", parts: [0]),
            (before: 0, "é", parts: [0, 2]), (before: 0, "", parts: [0]), (before: 0, "\rx", parts: [0, 2]),
        ])
    func longLines(before: Int, _ text: String, parts: [Int]) {
        let line = Data(repeating: 97, count: LineSplitter.longestLine - before) + Data(text.utf8)
        let whole = String(decoding: line, as: UTF8.self)
        let expected = parts.map { $0 > 0 ? $0 : LineSplitter.longestLine + $0 }
        for ending in ["\n", "\r\n"] {
            let data = line + Data(ending.utf8)
            for cut in [0] + (LineSplitter.longestLine - 4..<data.count) {
                let splitter = LineSplitter()
                let lines = splitter.append(data.prefix(cut)) + splitter.append(data.dropFirst(cut))
                #expect(lines.map(\.utf8.count) == expected, "\(ending.debugDescription), cut at \(cut)")
                #expect(lines.joined() == whole)
                #expect(splitter.append(Data("next\n".utf8)) == ["next"])
            }
        }
    }

    @Test("Long lines of bytes that are no text are cut, too")
    func longGarbage() {
        let splitter = LineSplitter()
        let garbage = Data(repeating: 97, count: LineSplitter.longestLine - 4) + Data(repeating: 0x80, count: 6)
        let lines = splitter.append(garbage)
        #expect(lines.map(\.unicodeScalars.count) == [LineSplitter.longestLine])
        #expect(splitter.end() == "\u{FFFD}\u{FFFD}")
    }
}
