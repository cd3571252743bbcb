import OperationKit
import OperationKitTimelines
import Testing

@testable import OperationDemo

/// What is drawn and said of timelines, without running anything.
@Suite struct DrawingTests {
    private static func entry(
        _ number: UInt64, _ name: String, in parent: UInt64? = nil, type: String = "TimedWork", started: Int?,
        finished: Int?, outcome: OperationTimeline.Outcome? = .success
    ) -> OperationTimeline.Entry {
        .init(
            id: OperationID(number), name: name, typeName: type, parent: parent.map { OperationID($0) }, added: .zero,
            started: started.map { .milliseconds($0) }, running: started.map { .milliseconds($0) },
            finished: finished.map { .milliseconds($0) }, outcome: finished == nil ? nil : outcome)
    }

    private static let naive = OperationTimeline(entries: [
        entry(1, "queue", type: "OperationQueue", started: 0, finished: 60),
        entry(2, "correct", in: 1, started: 0, finished: 50),
        entry(3, "naive", in: 1, type: "NaiveWork", started: 50, finished: 60),
        entry(4, "naive (work)", in: 3, type: "Work", started: 51, finished: 561),
    ])

    @Test("A finding says which operation was finished before its work, and how much earlier") func earlyEnd() {
        #expect(Findings(Self.naive).earlyEnds == ["naive was finished 501 ms before its work."])
        let correct = OperationTimeline(entries: Array(Self.naive.entries.prefix(2)))
        #expect(Findings(correct).earlyEnds == [])
    }

    @Test("The log has a line for each event, oldest first, and none for the queue") func log() {
        let notes = [Recording.Note(time: .milliseconds(20), name: "correct", text: "gets a value")]
        let lines = TimelineLog(Self.naive, notes: notes).text(style: .plain)
        #expect(
            lines == [
                "     0 ms  correct       enqueued", "     0 ms  correct       started",
                "     0 ms  naive         enqueued", "    20 ms  correct       gets a value",
                "    50 ms  correct       finished", "    50 ms  naive         started",
                "    51 ms  naive (work)  started", "    60 ms  naive         finished",
                "   561 ms  naive (work)  finished",
            ])
    }

    @Test("Live scales are round, and not shorter than what they show")
    func roundTimes() {
        #expect(Duration.milliseconds(1).roundTime == .milliseconds(100))
        #expect(Duration.milliseconds(101).roundTime == .milliseconds(200))
        #expect(Duration.seconds(1).roundTime == .seconds(1))
        #expect(Duration.milliseconds(4_001).roundTime == .seconds(6))
        #expect(Duration.seconds(81).roundTime == .seconds(100))
    }

    @Test("A live region is written in its place, and not at all if nothing has changed") func liveRegion() {
        var region = LiveRegion()
        #expect(region.update(["a", "b"]) == "\ra\u{1B}[K\nb\u{1B}[K\n\u{1B}[J")
        #expect(region.update(["a", "b"]) == "")
        #expect(region.update(["c"]) == "\r\u{1B}[2Ac\u{1B}[K\n\u{1B}[J")
        #expect(region.erase() == "\r\u{1B}[1A\u{1B}[J")
        #expect(region.erase() == "")
    }

    @Test("Sentences are broken between words, and names are cut in the middle") func texts() {
        #expect("  one two three".wrapped(to: 9) == ["  one two", "  three"])
        #expect("unbreakable".wrapped(to: 4) == ["unbreakable"])
        #expect("compound-1-2".cutInTheMiddle(to: 8) == "comp…1-2")
        #expect("abc".cutInTheMiddle(to: 3) == "abc" && "abc".cutInTheMiddle(to: 1) == "…")
        #expect("abc".cutInTheMiddle(to: 0) == "")
    }

    @Test("Both runs are drawn on the scale of the longer one, and a gain is named only if there is one")
    func commonScale() throws {
        func lines(_ durations: [Int], limit: Int = 4) -> [String] {
            let runs = durations.map { duration in
                let section = Section(title: "queue", name: "queue", limit: limit) { _ in { [] } }
                let timeline = OperationTimeline(entries: [Self.entry(1, "work", started: 0, finished: duration)])
                return Run(section: section, timeline: timeline, notes: [], findings: [])
            }
            return Report(scenario: .async, style: .plain, showsLog: false).lines(of: runs, columns: 60)
        }
        let rows = lines([1_000, 500]).filter { $0.hasPrefix("work") }.map { $0.count { $0 == "█" } }
        #expect(rows.count == 2 && abs(rows[0] - 2 * rows[1]) <= 1)
        #expect(lines([1_000, 500]).contains { $0.hasPrefix("The same work took 1000 ms") })
        #expect(!lines([1_000, 500], limit: 1).contains { $0.hasPrefix("The same work") }, "By chance")
        #expect(!lines([1_000, 950]).contains { $0.hasPrefix("The same work") })
        #expect(!lines([500, 1_000]).contains { $0.hasPrefix("The same work") })
    }

    @Test("Moving an entry moves all its times, none of them before 0") func shifting() {
        var entry = Self.entry(1, "work", started: 20, finished: 50)
        entry.waits = [.init(reason: "waiting", from: .milliseconds(5), to: .milliseconds(20))]
        entry.retries = [.init(attempt: 1, error: "", time: .milliseconds(30), delay: .milliseconds(1))]
        let moved = entry.shifted(by: .milliseconds(-10))
        #expect(moved.added == .zero && moved.running == .milliseconds(10) && moved.finished == .milliseconds(40))
        #expect(moved.waits.first?.from == .zero && moved.waits.first?.to == .milliseconds(10))
        #expect(moved.retries.first?.time == .milliseconds(20) && moved.retries.first?.delay == .milliseconds(1))
    }

    @Test("Keys are read, and of escape sequences only the arrows up and down") func keys() {
        #expect(Key.keys(in: Array("a X".utf8)) == [.add(.async), .toggleSuspension, .cancelAll])
        #expect(Key.keys(in: Array("\u{1B}[Aq\u{1B}OBj".utf8)) == [.choosePrevious, .quit, .chooseNext, .chooseNext])
        #expect(Key.keys(in: Array("\u{1B}OSs\u{1B}[1;5Cn".utf8)) == [.add(.sync), .add(.naive)])
        #expect(Key.keys(in: Array("zé\u{1B}\u{1B}[".utf8)) == [])
    }
}
