import OperationKit
import OperationKitTimelines
import Testing

@testable import OperationDemo

/// What `--interactive` shows, without a terminal.
@Suite struct BoardTests {
    private static let settings = ["serial", "running"]

    private static func entry(
        _ number: UInt64, in parent: UInt64? = nil, started: Int? = nil, finished: Int? = nil,
        type: String = "TimedWork"
    ) -> OperationTimeline.Entry {
        .init(
            id: OperationID(number), name: "operation-\(number)", typeName: type,
            parent: parent.map { OperationID($0) },
            added: .milliseconds(Int(number)), started: started.map { .milliseconds($0) },
            running: started.map { .milliseconds($0) }, finished: finished.map { .milliseconds($0) },
            outcome: finished == nil ? nil : .success)
    }

    /// One that has finished, one that works with two children, and one that waits.
    private static let timeline = OperationTimeline(
        entries: [
            entry(1, started: 10, finished: 500), entry(2, started: 500), entry(3, in: 2, started: 510),
            entry(4, in: 2), entry(5),
        ], duration: .seconds(1))

    private static func lines(_ board: Board, columns: Int, rows: Int = 23) -> [String] {
        board.lines(columns: columns, rows: rows, style: .plain)
    }

    @Test("The counts are those of the rows", arguments: [20, 40, 79, 200])
    func counts(columns: Int) {
        let lines = Self.lines(Board(Self.timeline, settings: Self.settings), columns: columns)
        let status = lines.prefix { $0.hasPrefix(" ") && !$0.contains("▶") }.joined(separator: ",")
        #expect(status.contains("2 working") && status.contains("2 waiting") && status.contains("1 finished"))
        #expect(lines.filter { $0.contains("▶") && !$0.contains("unfinished") }.count == 4)
        #expect(lines.allSatisfy { $0.count <= columns })
    }

    @Test("What waits for a resource is counted as waiting") func waiting() {
        var entry = Self.entry(1, started: 10)
        entry.running = nil
        entry.waits = [.init(reason: "waiting for a lock", from: .milliseconds(10), to: nil)]
        let board = Board(OperationTimeline(entries: [entry]), settings: [])
        #expect(Self.lines(board, columns: 79)[0] == " 0 working, 1 waiting, 0 finished")
    }

    @Test("The first that has not finished is chosen, unless another one is") func choice() {
        let board = Board(Self.timeline, settings: [])
        #expect(board.chosen == OperationID(2))
        #expect(board.neighbor(1) == OperationID(3) && board.neighbor(-1) == OperationID(2))
        let other = Board(Self.timeline, settings: [], choice: OperationID(5))
        #expect(other.chosen == OperationID(5) && other.neighbor(1) == OperationID(5))
        #expect(other.neighbor(-1) == OperationID(4))
        #expect(Board(Self.timeline, settings: [], choice: OperationID(1)).chosen == OperationID(2), "It has finished")
        let marked = Self.lines(other, columns: 79).filter { $0.contains("▸") && $0.contains("operation") }
        #expect(marked.count == 1 && marked[0].contains("▸ operation-5"))
    }

    @Test("Work that its operation has left behind cannot be chosen") func leftWork() {
        let entries = [Self.entry(1, started: 1, finished: 2), Self.entry(2, in: 1, started: 1, type: "Work")]
        let board = Board(OperationTimeline(entries: entries), settings: [])
        #expect(board.chosen == nil && board.neighbor(1) == nil)
    }

    @Test("Where there is no room, lines say how many others there are, and the chosen one is shown")
    func window() {
        let entries = (1...50).map { Self.entry($0, started: $0 == 1 ? 1 : nil) }
        let timeline = OperationTimeline(entries: entries, duration: .seconds(1))
        for choice in [1, 25, 50] as [UInt64] {
            let board = Board(timeline, settings: [], choice: OperationID(choice))
            let lines = Self.lines(board, columns: 79)
            #expect(lines.count <= 23)
            #expect(lines.contains { $0.hasPrefix("▸ operation-\(choice) ") || $0.hasPrefix("▸ operation-\(choice)◆") })
            let rows = lines.count { $0.contains("operation-") }
            let hidden = lines.filter { $0.hasPrefix("… and ") }
                .compactMap { Int($0.split(separator: " ").dropFirst(2).first ?? "") }
            #expect(rows > 0 && rows + hidden.reduce(0, +) == 50)
        }
    }

    @Test("What finished long ago makes room, and is still counted") func old() {
        let entries = [
            Self.entry(1, started: 1, finished: 100), Self.entry(2, started: 29_000),
        ]
        let board = Board(OperationTimeline(entries: entries, duration: .seconds(30)), settings: [])
        let lines = Self.lines(board, columns: 79)
        #expect(lines[0] == " 1 working, 0 waiting, 1 finished" && lines[1] == "… and 1 earlier")
    }

    @Test("Without operations the board says what to do, and the help names every key") func empty() {
        let board = Board(OperationTimeline(entries: []), settings: Self.settings, message: "Nothing to cancel.")
        let lines = Self.lines(board, columns: 79)
        #expect(lines[0] == " serial, running, 0 working, 0 waiting, 0 finished")
        #expect(lines[1] == "Nothing is going on: add something." && lines[2] == "Nothing to cancel.")
        let help = Board(OperationTimeline(entries: []), settings: [], showsHelp: true)
        #expect(Self.lines(help, columns: 79).suffix(Key.legend.count) == Key.legend[...])
    }
}
