import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

#if canImport(FoundationXML)
import FoundationXML
#endif

@Suite("Timelines as documents", .hangGuard) struct TimelineDocumentTests {
    private typealias Entry = OperationTimeline.Entry

    // MARK: - Chrome trace

    private struct TraceEvent: Decodable {
        let ph: String
        let name: String
        let pid: Int
        let tid: Int
        let ts: Double?
        let dur: Double?
        let cat: String?

        var end: Double { (ts ?? 0) + (dur ?? 0) }
    }

    private struct Trace: Decodable {
        let traceEvents: [TraceEvent]
    }

    private func trace(_ timeline: OperationTimeline) throws -> [TraceEvent] {
        try JSONDecoder().decode(Trace.self, from: Data(timeline.chromeTrace.utf8)).traceEvents
    }

    @Test(
        "A Chrome trace is JSON whose slices are nested or apart in each lane", arguments: OperationTimeline.all.indices
    )
    func chromeTrace(number: Int) throws {
        let timeline = OperationTimeline.all[number]
        let slices = try trace(timeline).filter { $0.ph == "X" }
        #expect(
            slices.count { $0.cat != "waiting" } == timeline.entries.count { $0.started != nil || $0.running != nil })
        for (_, lane) in Dictionary(grouping: slices, by: \.tid) {
            var open: [TraceEvent] = []
            // The outer one first, as viewers do.
            for slice in lane.sorted(by: { ($0.ts ?? 0, -($0.dur ?? 0)) < ($1.ts ?? 0, -($1.dur ?? 0)) }) {
                while let last = open.last, last.end <= slice.ts ?? 0 { open.removeLast() }
                if let last = open.last { #expect(slice.end <= last.end, "\(slice.name) in \(last.name)") }
                open.append(slice)
            }
        }
    }

    @Test("A Chrome trace has attempts, cancellations and the critical path") func traceEvents() throws {
        let events = try trace(.sample)
        let phases = Dictionary(grouping: events, by: \.ph).mapValues(\.count)
        // Three lanes, each with a name and a place. The path has one step only, so there is no arrow.
        #expect(phases == ["M": 7, "X": 10, "i": 2])
        let arrows = try trace(chain).filter { $0.name == "critical path" }
        #expect(arrows.map(\.ph) == ["s", "f"] && arrows[0].tid == 1 && arrows[1].ts == 1_000)
        #expect(try trace(.plain((0, 1))).contains { $0.dur == 1_000 })
        let parts = [
            #""otherData":{"droppedOperations":2,"startMillisecondsSince1970":1750000000250}"#,
            #""error":"1 of 6 operations failed"},"cat":"composite","dur":3000000.0"#,
            #""outcome":"failed","error":"no <connection>","not started for":"1 s","depends on":"login","held":"db"}"#,
            #"{"id":8,"type":"Operation","outcome":"none"},"cat":"operation""#, #""cat":"waiting","dur":500000.0"#,
        ]
        #expect(parts.filter { !OperationTimeline.sample.chromeTrace.contains($0) } == [])
    }

    private let chain = OperationTimeline(entries: [
        .child(1, "first", (0, 1)) { $0.parent = nil }, .child(2, "second", (1, 3), after: [1]) { $0.parent = nil },
    ])

    @Test("A slice that would end after the one around it is in another lane, or ends with it; a sleep is an instant")
    func lateEnds() throws {
        func events(_ wait: String, to end: Int, running: Duration? = nil) throws -> [TraceEvent] {
            try trace(
                OperationTimeline(entries: [
                    Entry(
                        id: OperationID(1), name: "outer", started: .zero, running: running, finished: .seconds(2),
                        waits: [.init(reason: wait, from: .seconds(1), to: .seconds(end))], outcome: .success,
                        isComposite: true),
                    .child(2, "late", (1_000, 3_000)),
                ]))
        }
        let slices = try events("wait", to: 4).filter { $0.ph == "X" }
        #expect(slices.map(\.name) == ["outer", "wait", "late"] && slices.map(\.tid) == [1, 1, 2])
        #expect(slices[1].end == slices[0].end)
        // In the lane of a workflow, children may begin before the end of its sleep, and end after it.
        let asleep = try events("sleeping for 1 s", to: 2, running: .zero)
        #expect(asleep.filter { $0.ph == "X" }.map(\.name) == ["outer", "late"])
        #expect(asleep.filter { $0.ph == "i" }.map(\.name) == ["sleeping for 1 s"])
    }

    // MARK: - Hostile text

    /// What could end a text in one of the formats, in front of what would be part of the document then.
    static let endings = [
        "\"", "\"\u{301}", "\\", "\\\u{301}", "\\\"", "]", "]\u{301}", "\n", "\r\n\u{301}", "\u{2028}", "<", ">\u{301}",
        "&", "'", "{", "|", "👩‍👩‍👧", "]]>", ";", ":\u{301}", "#", "`", "}", "%%", "-->", "\u{0}", "\u{1B}[2J", "\u{202E}",
        "\u{FFFF}",
    ]

    @Test("No name can end its text in a document, also in front of a combining mark", arguments: endings)
    func hostileText(ending: String) throws {
        let evil = "a\(ending) x=\"y\"; evil:evil <evil/>"
        let timeline = OperationTimeline(entries: [
            Entry(
                id: OperationID(1), name: evil, typeName: evil, started: .zero, running: .seconds(1),
                finished: .seconds(2), waits: [.init(reason: evil, from: .zero, to: .seconds(1))],
                retries: [.init(attempt: 1, error: evil, time: .zero, delay: .zero)], outcome: .failed(evil),
                resources: [evil])
        ])
        let scalars = { (text: String) in Array(text.unicodeScalars) }
        // DOT: each line has the quotes of its own attributes, and no other that is not escaped.
        for line in timeline.graph.dot.split(separator: "\n") where line.contains("evil") {
            var (count, isEscaped) = (0, false)
            for scalar in scalars(String(line)) {
                if scalar == "\"", !isEscaped { count += 1 }
                isEscaped = scalar == "\\" && !isEscaped
            }
            #expect(count == 6, "\(line)")
        }
        // Mermaid: a label has no quote or bracket of its own, and a task only the colon in front of its data.
        for line in timeline.graph.mermaid.split(separator: "\n") where line.contains("evil") {
            #expect(scalars(String(line)).count { $0 == "\"" } == 2 && scalars(String(line)).count { $0 == "]" } == 1)
        }
        for line in timeline.mermaid(title: evil).split(separator: "\n").dropFirst(2) where line.contains("evil") {
            #expect(scalars(String(line)).count { $0 == ":" } == 1)
        }
        #expect(try trace(timeline).contains { $0.ph == "X" && scalars($0.name) == scalars(evil) })
        let parser = XMLParser(data: Data(timeline.svg(title: evil).utf8))
        #expect(parser.parse() && !timeline.svg(title: evil).contains("<evil"))
        let texts = [
            timeline.text(columns: 200), "\(timeline.summary)",
            timeline.criticalPath.map { timeline.description(of: $0) }.joined(separator: "\n"),
        ]
        for line in texts.flatMap({ $0.split(separator: "\n") }) {
            #expect(scalars(String(line)).allSatisfy { $0.value >= 32 && $0 != "\u{202E}" && $0 != "\u{2028}" })
        }
        #expect(texts.map { $0.split(separator: "\n").count } == [3, 4, 1])
    }

    // MARK: - Mermaid

    @Test("A gantt chart has sections for composites and tasks for operations") func mermaid() {
        #expect(
            OperationTimeline.sample.mermaid(maximumRows: 7) == """
                gantt
                    title Timeline (ms)
                    dateFormat x
                    axisFormat %Q
                    section Sync
                    Sync (failed) :crit, op1, 0, 3000
                    login :done, op2, 0, 1000
                    page 1 of the very long list (failed) :crit, op3, 1000, 2500
                    page 2 :done, op4, 1000, 1500
                    page 3 #38; #60;co#62; (cancelled) :op5, 1500, 2200
                    upload :done, op6, 2200, 3000
                    section Operations
                    other :active, crit, op8, 500, 3100
                    section Note
                    1 other is not shown :milestone, 3100, 0d
                    2 other operations were not recorded :milestone, 3100, 0d

                """)
        #expect(OperationTimeline.sample.mermaid(maximumRows: 6).contains(" 2 others are not shown :milestone"))
        #expect(OperationTimeline(entries: []).mermaid().contains("No operations were recorded :milestone, 0, 0d"))
    }

    @Test("An operation around others has a section, and a moment is a milestone") func mermaidMoments() {
        let chart = OperationTimeline(entries: [
            Entry(
                id: OperationID(1), name: "outer", running: .zero, finished: .seconds(1), outcome: .failed("no page")),
            .child(2, "moment", (500, 500)),
        ]).mermaid()
        #expect(chart.contains("section outer\n    outer (failed) :crit, op1, 0, 1000\n    moment :"), "\(chart)")
        #expect(chart.contains("milestone, op2, 500, 0d") && !chart.contains("section Operations"), "\(chart)")
    }

    @Test("What a gantt chart takes for something else is written as an entity") func mermaidNames() {
        let names = ["a:b;c#d", "section one", "Title", "2026-01-01", "", " \n ", "50 %%", "click"]
        #expect(
            names.map(\.mermaidName) == [
                "a#58;b#59;c#35;d", "#115;ection one", "#84;itle", "#50;026-01-01", "unnamed", "unnamed",
                "#53;0 #37;#37;",
                "#99;lick",
            ])
    }
}
