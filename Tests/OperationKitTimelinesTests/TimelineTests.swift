import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Timelines as values", .hangGuard) struct TimelineTests {
    private typealias Entry = OperationTimeline.Entry

    private func decoded(_ json: String) throws -> OperationTimeline {
        try JSONDecoder().decode(OperationTimeline.self, from: Data(json.utf8))
    }

    /// What the decoder says is wrong.
    private func problem(_ json: String) -> String? {
        do {
            _ = try decoded(json)
            return nil
        } catch DecodingError.dataCorrupted(let context) {
            return context.debugDescription
        } catch {
            return "\(error)"
        }
    }

    private func json(operations: String, format: Int = 1, duration: Int = 10, dropped: Int = 0) -> String {
        "{\"format\":\(format),\"duration\":\(duration),\"dropped\":\(dropped),\"operations\":[\(operations)]}"
    }

    @Test("A timeline that is encoded and decoded is the same") func roundTrip() throws {
        for timeline in [.sample, .wide(300), OperationTimeline(entries: [])] {
            let data = try JSONEncoder().encode(timeline)
            #expect(try JSONDecoder().decode(OperationTimeline.self, from: data) == timeline)
        }
    }

    @Test("The JSON of a timeline has short names, whole nanoseconds, and nothing that is empty") func encoding() throws
    {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let timeline = OperationTimeline(entries: [
            Entry(
                id: OperationID(7), name: "load", started: .nanoseconds(3), running: .microseconds(2),
                finished: .milliseconds(1), outcome: .failed("no"), dependencies: [OperationID(3)])
        ])
        #expect(
            String(decoding: try encoder.encode(timeline), as: UTF8.self)
                == """
                {"duration":1000000,"format":1,"operations":[{"dependencies":[3],"error":"no","finished":1000000,"id":7,\
                "name":"load","outcome":"failed","running":2000,"started":3,"type":"Operation"}]}
                """)
    }

    @Test("What cannot be is not decoded, and the error names the entry") func nonsense() {
        let entry = { (id: Int, more: String) in "{\"id\":\(id),\"name\":\"a\",\"type\":\"T\"\(more)}" }
        #expect(problem(json(operations: entry(1, ""))) == nil)
        #expect(
            problem(json(operations: entry(1, ",\"parent\":9")))
                == "The parent of “a” (1), 9, is not in the timeline.")
        #expect(
            problem(json(operations: entry(1, ",\"parent\":2") + "," + entry(2, ",\"parent\":1")))
                == "The parent of “a” (2), 1, is inside it.")
        #expect(problem(json(operations: entry(1, ",\"parent\":1"))) == "The parent of “a” (1), 1, is inside it.")
        #expect(problem(json(operations: entry(1, ",\"started\":-1"))) == "A time of “a” (1) is negative.")
        let wait = ",\"waits\":[{\"reason\":\"w\",\"from\":-5}]"
        #expect(problem(json(operations: entry(1, wait))) == "A time of “a” (1) is negative.")
        #expect(
            problem(json(operations: entry(1, "") + "," + entry(1, ""))) == "There are two entries for operation 1.")
        #expect(
            problem(json(operations: "", format: 2)) == "The timeline has format 2; this version reads format 1.")
        #expect(problem(json(operations: "", duration: -1)) == "The duration of the timeline is negative.")
        #expect(
            problem(json(operations: "", dropped: -1)) == "The number of operations that were not recorded is negative."
        )
        #expect(problem("{}")?.contains("format") == true)
        let disorder = ",\"running\":9,\"finished\":2"
        #expect(problem(json(operations: entry(1, disorder))) == "The times of “a” (1) are not in order.")
        let backward = ",\"waits\":[{\"reason\":\"w\",\"from\":5,\"to\":4}]"
        #expect(problem(json(operations: entry(1, backward))) == "The times of “a” (1) are not in order.")
        #expect(problem(json(operations: entry(1, ",\"dependencies\":[1]"))) == "“a” (1) depends on itself.")
    }

    @Test("Times and dates beyond all measure overflow nothing") func extremes() {
        let entries = (1...3).map { number in
            Entry(
                id: OperationID(UInt64(number)), name: "\(number)", running: .zero, finished: .seconds(Int64.max),
                waits: [.init(reason: "w", from: .zero, to: .seconds(Int64.max))])
        }
        for date in [1e300, -1e300] {
            let timeline = OperationTimeline(entries: entries, startDate: Date(timeIntervalSince1970: date))
            #expect(timeline.summary.work == .nanoseconds(Int64.max))
            #expect(Duration.seconds(Int64.min).nanoseconds == .min)
            #expect(timeline.text().contains("█") && timeline.svg().hasPrefix("<svg"))
            #expect(timeline.mermaid().hasPrefix("gantt") && !timeline.chromeTrace.isEmpty)
            #expect(timeline.criticalPath.count == 1)
        }
    }

    @Test("A timeline is as long as the last of its times, or longer if it is said to be") func duration() {
        let entry = Entry(
            id: OperationID(1), name: "a", finished: .seconds(2), returned: .seconds(3),
            waits: [.init(reason: "w", from: .seconds(1), to: .seconds(4))])
        #expect(OperationTimeline(entries: [entry]).duration == .seconds(4))
        #expect(OperationTimeline(entries: [entry], duration: .seconds(1)).duration == .seconds(4))
        #expect(OperationTimeline(entries: [entry], duration: .seconds(9)).duration == .seconds(9))
        #expect(OperationTimeline(entries: []).duration == .zero)
    }

    @Test("Any subset of the entries makes a timeline, in which missing parents are none") func subsets() {
        let entries = Array(OperationTimeline.sample.entries.dropFirst())
        let timeline = OperationTimeline(entries: entries)
        #expect(timeline.entries.count == 7 && timeline.entries.allSatisfy { $0.parent == nil })
        let ring = (1...3).map { number in
            Entry(id: OperationID(UInt64(number)), name: "\(number)", parent: OperationID(UInt64(number % 3 + 1)))
        }
        let parents = OperationTimeline(entries: ring).entries.map(\.parent)
        #expect(parents.count { $0 == nil } == 1)
    }

    @Test("The part of a timeline inside an operation has all that is inside it, at any depth, and nothing else")
    func parts() {
        var entries = OperationTimeline.sample.entries
        entries.append(Entry(id: OperationID(9), name: "inner", parent: OperationID(6), started: .seconds(1)))
        let timeline = OperationTimeline(entries: entries)
        #expect(timeline.entries(inside: OperationID(1)).map(\.id.number) == [1, 2, 3, 4, 5, 6, 7, 9])
        let part = timeline.part(inside: OperationID(6))
        #expect(part.entries.map(\.name) == ["upload", "inner"] && part.duration == timeline.duration)
        #expect(part.entries[0].parent == nil && part.entries[1].parent == OperationID(6))
        #expect(
            timeline.entries(inside: OperationID(99)).isEmpty && timeline.part(inside: OperationID(99)).entries == [])
        #expect(timeline[OperationID(9)]?.name == "inner" && timeline[OperationID(99)] == nil)
    }

    @Test("Outer entries are selected rather than inner ones, and earlier ones rather than later ones") func selection()
    {
        let parents: [UInt64?] = [nil, 1, 2, 1, 4, nil]
        let timeline = OperationTimeline(
            entries: parents.enumerated().map { number, parent in
                Entry(
                    id: OperationID(UInt64(number + 1)), name: "", parent: parent.map { OperationID($0) },
                    started: .seconds(number))
            })
        let index = TimelineIndex(timeline.entries)
        let selected = (0...6).map { index.selection(atMost: $0) }
        #expect(selected == [[], [0], [0, 5], [0, 1, 5], [0, 1, 3, 5], [0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5]])
    }

    @Test("Composites inside each other at great depth are indexed and drawn") func deep() {
        let count = TestExtent.choose(1_500, long: 10_000)
        let timeline = OperationTimeline(
            entries: (1...count).map { number in
                Entry(
                    id: OperationID(UInt64(number)), name: "level \(number)",
                    parent: number > 1 ? OperationID(UInt64(number - 1)) : nil, started: .milliseconds(number),
                    running: .milliseconds(number), finished: .milliseconds(3 * count - number), outcome: .success,
                    isComposite: number < count)
            })
        #expect(timeline.criticalPath.count > count && timeline.criticalPath.last?.to == timeline.duration)
        #expect(timeline.entries(inside: OperationID(2)).count == count - 1)
        #expect(timeline.text(maximumRows: 5).contains("… and \(count - 5) others"))
        #expect(timeline.svg().contains("1 other, at most") == false && timeline.svg().contains("\(count - 300) others"))
        #expect(timeline.graph.mermaid.contains("… and \(count - 500) more"))
        #expect(timeline.summary.maximumParallelism == 1)
    }
}
