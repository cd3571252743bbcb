import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Timelines as values", .hangGuard) struct TimelineTests {
    private typealias Entry = OperationTimeline.Entry

    private func decoded(_ json: String) throws -> OperationTimeline {
        try JSONDecoder().decode(OperationTimeline.self, from: Data(json.utf8))
    }

    /// What the decoder says is wrong.
    private func problem(_ json: String) -> String? {
        let error = Result { try decoded(json) }.failure
        if case DecodingError.dataCorrupted(let context)? = error { return context.debugDescription }
        return error.map { "\($0)" }
    }

    private func json(operations: String = "", format: Int = 1, duration: Int = 10, dropped: Int = 0) -> String {
        "{\"format\":\(format),\"duration\":\(duration),\"dropped\":\(dropped),\"operations\":[\(operations)]}"
    }

    @Test("A timeline that is encoded and decoded is the same") func roundTrip() throws {
        let retries = [OperationTimeline.Retry(attempt: 1, error: "", time: .zero, delay: .nanoseconds(1) / 3)]
        let fine = Entry(id: OperationID(1), name: "fine", started: .microseconds(1) / 3, retries: retries)
        for timeline in [.sample, .wide(300), OperationTimeline(entries: []), OperationTimeline(entries: [fine])] {
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

    private static let nonsense: [(more: String, problem: String?)] = [
        ("", nil), (",\"parent\":9", "The parent of “a” (1), 9, is not in the timeline."),
        (",\"parent\":1", "The parent of “a” (1), 1, is inside it."),
        (",\"started\":-1", "A time of “a” (1) is negative."),
        (",\"waits\":[{\"reason\":\"w\",\"from\":-5}]", "A time of “a” (1) is negative."),
        (",\"running\":9,\"finished\":2", "The times of “a” (1) are not in order."),
        (",\"waits\":[{\"reason\":\"w\",\"from\":5,\"to\":4}]", "The times of “a” (1) are not in order."),
        (",\"dependencies\":[1]", "“a” (1) depends on itself."),
        (",\"outcome\":\"fine\"", "There is no outcome “fine”."),
        ("},{\"id\":1,\"name\":\"b\",\"type\":\"T\"", "There are two entries for operation 1."),
        (
            ",\"parent\":2},{\"id\":2,\"name\":\"a\",\"type\":\"T\",\"parent\":1",
            "The parent of “a” (2), 1, is inside it."
        ),
    ]

    @Test("What cannot be is not decoded, and the error names the entry", arguments: nonsense.indices)
    func refused(number: Int) {
        let (more, expected) = Self.nonsense[number]
        #expect(problem(json(operations: "{\"id\":1,\"name\":\"a\",\"type\":\"T\"\(more)}")) == expected)
    }

    @Test("A timeline of another format, or with negative numbers, is not decoded") func otherFormats() {
        let texts = [json(format: 2), json(duration: -1), json(dropped: -1)]
        #expect(
            texts.map(problem) == [
                "The timeline has format 2; this version reads format 1.", "The duration of the timeline is negative.",
                "The number of operations that were not recorded is negative.",
            ])
        #expect(problem("{}")?.contains("format") == true)
    }

    /// All drawings, and all that is found out.
    private func forms(of timeline: OperationTimeline) -> [String] {
        [
            timeline.text(columns: .max, maximumRows: .max, end: .seconds(Int64.max)), timeline.text(columns: .min),
            timeline.svg(), timeline.svg(width: .max, maximumRows: .min, end: .seconds(Int64.max)),
            timeline.svg(width: .min, end: .seconds(Int64.min)), timeline.chromeTrace, timeline.graph.dot,
            OperationGraph(of: timeline, maximumCount: .max).dot, OperationGraph(of: timeline, maximumCount: .min).dot,
            timeline.mermaid(maximumRows: .max), timeline.graph.mermaid, "\(timeline.summary)",
            timeline.criticalPath.map { timeline.description(of: $0) }.joined(),
            timeline.entries.map { timeline.bound(without: $0.id).shortText }.joined(),
        ]
    }

    @Test(
        "Decoded times at the edge of what a number can hold are drawn, or refused, and nothing overflows",
        arguments: ["9223372036854775807", "9223372036854775806", "9223372036854775808", "1e300", "-1", "0", "\"NaN\""])
    func extremeNumbers(number: String) throws {
        let operations = (1...3).map { id in
            """
            {"id":\(id),"name":"a","type":"T","added":0,"started":0,"running":\(number),"finished":\(number),\
            "limit":9223372036854775807,"resources":["r"],"dependencies":[\(id % 3 + 1)],\
            "waits":[{"reason":"w","from":0,"to":\(number)}],\
            "retries":[{"attempt":9223372036854775807,"error":"e","time":0,"delay":\(number)}]}
            """
        }.joined(separator: ",")
        let text = """
            {"format":1,"start":9223372036854775807,"duration":\(number),"dropped":9223372036854775807,\
            "operations":[\(operations)]}
            """
        guard let timeline = try? decoded(text) else {
            return #expect(!["9223372036854775807", "9223372036854775806", "0"].contains(number))
        }
        #expect(forms(of: timeline).allSatisfy { !$0.isEmpty })
        #expect(try decoded(String(decoding: JSONEncoder().encode(timeline), as: UTF8.self)) == timeline)
    }

    @Test("A retry after the end is no work, and makes no number too large") func retryAfterEnd() throws {
        let retries = [2_305_843_009_213_693_950, 2_305_843_009_213_693_952].map {
            "{\"attempt\":1,\"error\":\"\",\"time\":\($0),\"delay\":1}"
        }.joined(separator: ",")
        let entry = """
            {"id":1,"name":"a","type":"T","running":0,"finished":1,"retries":[\(retries)]}
            """
        let timeline = try decoded(json(operations: entry))
        #expect(timeline.summary.work == .nanoseconds(1) && timeline.summary.meanParallelism == 1)
        #expect(forms(of: timeline).allSatisfy { !$0.isEmpty })
    }

    @Test("Times and dates beyond all measure overflow nothing", arguments: [1e300, -1e300])
    func extremeDates(date: Double) {
        let longest = Duration.seconds(Int64.max)
        var entries = (1...4).map { number in
            Entry(
                id: OperationID(UInt64(number)), name: "\(number)", running: .zero, finished: longest,
                waits: [.init(reason: "w", from: .zero, to: longest)],
                retries: [.init(attempt: .min, error: "", time: longest, delay: longest)])
        }
        entries.append(Entry(id: OperationID(5), name: "5", added: longest))
        let timeline = OperationTimeline(
            entries: entries, startDate: Date(timeIntervalSince1970: date), duration: longest, droppedCount: .max)
        #expect(timeline.duration == .latest)
        #expect(forms(of: timeline).allSatisfy { !$0.isEmpty } && Duration.seconds(Int64.min).nanoseconds == .min)
    }

    @Test("No operation works before its start, in whatever order the times of its entry are") func timesOutOfOrder() {
        let mild = Entry(
            id: OperationID(1), name: "a", started: .seconds(4), running: .seconds(1), finished: .seconds(5))
        let summary = OperationTimeline(entries: [mild]).summary
        #expect("\(summary)".contains("1 s for 1 s of work: 1 at the same time on average, 1 at most"))
        let times: [Duration] = [.zero, .seconds(4), .latest]
        for (started, running, finished) in times.flatMap({ a in times.flatMap { b in times.map { (a, b, $0) } } })
        where started > running || running > finished {
            let entry = Entry(id: OperationID(1), name: "a", started: started, running: running, finished: finished)
            let timeline = OperationTimeline(entries: [entry])
            #expect(timeline.summary.meanParallelism <= 1 && forms(of: timeline).allSatisfy { !$0.isEmpty })
        }
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

    @Test("Composites inside each other at great depth are indexed and drawn") func deep() {
        let count = TestExtent.choose(600, long: 10_000)
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
        #expect(timeline.text(maximumRows: 5).contains("\(count - 5) others are not shown."))
        #expect(timeline.svg().contains("\(count - 300) others are not shown."))
        #expect(timeline.graph.mermaid.contains("… and \(count - 500) more"))
        let graph = OperationGraph(of: timeline, maximumCount: count)
        #expect([graph.mermaid, graph.dot].allSatisfy { $0.utf8.count < 700 * count })
        #expect(timeline.summary.maximumParallelism == 1)
    }
}
