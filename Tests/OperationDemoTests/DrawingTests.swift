import Testing

@testable import OperationDemo

/// What is drawn and said of events, without running anything.
@Suite struct DrawingTests {
    private static let correct = Subject(name: "correct", number: 0)
    private static let naive = Subject(name: "naive", number: 1)

    private static func event(_ time: Int, _ subject: Subject, _ stage: Stage) -> Event {
        Event(time: .milliseconds(time), subject: subject, stage: stage, detail: nil)
    }

    private static let events = [
        event(0, correct, .enqueued), event(0, naive, .enqueued), event(0, correct, .started),
        event(50, correct, .workFinished), event(50, correct, .completion), event(50, naive, .started),
        event(50, naive, .completion), event(100, naive, .workFinished),
    ]

    @Test("Bars show waiting, work, and work that goes on after the completion") func bars() {
        let lines = Timeline(Self.events).lines(columns: 43, style: .plain)
        #expect(lines[0] == "  correct  ███████████|")
        #expect(lines[1] == "  naive    ··········|░░░░░░░░░")
        #expect(lines[2].hasSuffix("100 ms"))
        #expect(lines.count == 4)
    }

    @Test("The timeline fits its terminal", arguments: [1, 20, 40, 80, 200])
    func width(columns: Int) {
        // Below some width a bar says nothing any more.
        let limit = max(columns, 40)
        for line in Timeline(Self.events).lines(columns: columns, style: .plain) { #expect(line.count <= limit) }
    }

    @Test("Without events nothing is drawn") func noEvents() {
        #expect(Timeline([]).lines(columns: 80, style: .plain) == [])
    }

    @Test("A remark says which operation completes before its work has finished, and how much earlier")
    func earlyCompletion() {
        let earlier = [Self.event(10, Self.naive, .started)]
        let remark = Event.remark(on: .completion, at: .milliseconds(12), after: earlier)
        #expect(remark == "although its work is still going on")
        let later = earlier + [Self.event(12, Self.naive, .completion)]
        let found = Event.remark(on: .workFinished, at: .milliseconds(512), after: later)
        #expect(found == "completion came 500 ms before its work finished")
    }

    @Test("Correct operations get no remark") func noRemark() {
        let earlier = [Self.event(10, Self.correct, .started), Self.event(20, Self.correct, .workFinished)]
        #expect(Event.remark(on: .workFinished, at: .milliseconds(20), after: [earlier[0]]) == nil)
        #expect(Event.remark(on: .completion, at: .milliseconds(21), after: earlier) == nil)
        // Cancelled before its start, it has no work that could go on.
        let waiting = [Self.event(0, Self.correct, .enqueued)]
        #expect(Event.remark(on: .completion, at: .milliseconds(5), after: waiting) == nil)
    }

    @Test("Operations differ in their colors, and a plain style has none") func colors() {
        let colored = Style(isColored: true)
        #expect(colored.paint("x", for: Self.correct) != colored.paint("x", for: Self.naive))
        #expect(Style.plain.paint("x", for: Self.correct) == "x")
        let line = EventLine(style: .plain).text(for: Self.events[0])
        #expect(PrintedEvent(line: line)?.stage == .enqueued)
    }

    @Test("Keys are read, and escape sequences are not") func keys() {
        #expect(Key.keys(in: Array("a X".utf8)) == [.add(.async), .toggleSuspension, .cancelAll])
        #expect(Key.keys(in: Array("\u{1B}[Aq".utf8)) == [.quit])
        #expect(Key.keys(in: Array("\u{1B}OSs\u{1B}[1;5Cn".utf8)) == [.add(.sync), .add(.naive)])
        #expect(Key.keys(in: Array("zé\u{1B}".utf8)) == [])
    }
}
