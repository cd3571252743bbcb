import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

#if canImport(FoundationXML)
import FoundationXML
#endif

@Suite("Timelines as documents", .hangGuard) struct TimelineDocumentTests {
    private typealias Entry = OperationTimeline.Entry

    /// What a drawing could be broken by.
    private static let awkwardName = "a<b>&\"c'\n]]>\u{0}\u{1B}\u{FFFF}:;#%%{}👩‍👩‍👧\\`|"

    private static let timelines: [OperationTimeline] = [
        OperationTimeline(entries: []), .plain((0, 0)), .wide(1), .wide(10), .sample, .wide(300), .wide(10_000),
        OperationTimeline(
            entries: [
                Entry(
                    id: OperationID(1), name: awkwardName, typeName: awkwardName, started: .zero,
                    waits: [.init(reason: awkwardName, from: .zero, to: nil)],
                    retries: [.init(attempt: 1, error: awkwardName, time: .seconds(1), delay: .zero)],
                    outcome: .failed(awkwardName), resources: [awkwardName])
            ], duration: .seconds(2)),
    ]

    // MARK: - SVG

    /// Counts elements, and keeps the texts.
    private final class Reader: NSObject, XMLParserDelegate {
        private(set) var counts: [String: Int] = [:]
        private(set) var classes: [String: Int] = [:]
        private(set) var texts: [String] = []
        private(set) var widths: [Double] = []

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            counts[name, default: 0] += 1
            if let style = attributes["class"] { classes[style, default: 0] += 1 }
            if name == "rect", let width = attributes["width"].flatMap({ Double($0) }) { widths.append(width) }
            texts.append("")
        }

        func parser(
            _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
        ) {
            texts.append("")
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) {
            if !texts.isEmpty { texts[texts.count - 1] += string }
        }
    }

    private func read(_ svg: String) -> Reader? {
        let reader = Reader()
        let parser = XMLParser(data: Data(svg.utf8))
        parser.delegate = reader
        return parser.parse() ? reader : nil
    }

    @Test("The SVG of any timeline is well formed, with colors for light and dark", arguments: timelines.indices)
    func wellFormed(number: Int) throws {
        let timeline = Self.timelines[number]
        for svg in [timeline.svg(), timeline.svg(width: 0, maximumRows: 0, title: Self.awkwardName, end: .zero)] {
            let reader = try #require(read(svg), "\(svg.prefix(2_000))")
            #expect(reader.counts["svg"] == 1 && reader.counts["style"] == 1)
            #expect(svg.contains("@media (prefers-color-scheme: dark)"))
            #expect(reader.widths.allSatisfy { $0 >= 1 })
            #expect(!svg.contains("<script") && !svg.contains("href"))
        }
    }

    @Test("The SVG marks all that happened to operations, and says it in tooltips") func svgMarks() throws {
        let reader = try #require(read(OperationTimeline.sample.svg()))
        // One in the drawing and one in the legend, but for what occurs twice.
        let expected = [
            "waiting": 2, "late": 2, "failed": 3, "cancelled": 3, "unfinished": 2, "critical": 2, "retry": 2,
        ]
        for (style, count) in expected { #expect(reader.classes[style] == count, "\(style)") }
        #expect(
            reader.texts.contains(
                """
                page 1 of the very long list (Operation)
                1 s to 2.5 s: 1.5 s
                not started for 1 s
                waiting for “db”, 500 ms
                failed: no <connection>
                held db
                """))
        #expect(
            reader.texts.contains(
                """
                upload (Operation)
                2.2 s to 3 s: 800 ms
                not started for 2.2 s
                attempt 1 failed at 2.5 s: timeout
                succeeded
                """))
        #expect(reader.texts.contains { $0.hasSuffix("on the critical path: waiting for a place on a queue") })
        #expect(reader.texts.contains("2 other operations were not recorded."))
    }

    @Test("Operations that have no row of their own share one below their composite") func svgOthers() throws {
        let svg = OperationTimeline.wide(300).svg(maximumRows: 101)
        let reader = try #require(read(svg))
        #expect(
            reader.texts.contains("200 others, at most 8 working at the same time") && reader.texts.contains("item 99"))
        #expect(!reader.texts.contains("item 100"))
        // The size depends on the rows.
        let large = OperationTimeline.wide(10_000).svg(maximumRows: 101)
        #expect(large.utf8.count < 3 * svg.utf8.count)
    }

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

    @Test("A Chrome trace is JSON whose slices are nested or apart in each lane", arguments: timelines.indices)
    func chromeTrace(number: Int) throws {
        let timeline = Self.timelines[number]
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

    @Test("A Chrome trace has attempts, cancellations, late returns and the critical path") func traceEvents() throws {
        let events = try trace(.sample)
        let phases = Dictionary(grouping: events, by: \.ph).mapValues(\.count)
        // Three lanes, each with a name and a place. The path has one step only, so there is no arrow.
        #expect(phases == ["M": 7, "X": 8, "i": 3, "b": 1, "e": 1])
        let arrows = try trace(chain).filter { $0.name == "critical path" }
        #expect(arrows.map(\.ph) == ["s", "f"] && arrows[0].tid == 1 && arrows[1].ts == 1_000)
        #expect(try trace(.plain((0, 1))).contains { $0.dur == 1_000 })
    }

    private let chain = OperationTimeline(entries: [
        .child(1, "first", (0, 1)) { $0.parent = nil }, .child(2, "second", (1, 3), after: [1]) { $0.parent = nil },
    ])

    @Test("Nanoseconds are not lost in a Chrome trace") func traceDigits() {
        let timeline = OperationTimeline(entries: [
            Entry(id: OperationID(1), name: "a", running: .nanoseconds(1_000_007), finished: .nanoseconds(2_000_020))
        ])
        #expect(timeline.chromeTrace.contains("\"ts\":1000.007,") && timeline.chromeTrace.contains("\"dur\":1000.013}"))
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
        #expect(OperationTimeline(entries: []).mermaid().contains("No operations were recorded :milestone, 0, 0d"))
    }

    @Test("What a gantt chart takes for something else is written as an entity") func mermaidNames() {
        let names = ["a:b;c#d", "section one", "Title", "2026-01-01", "", " \n ", "50 %%", "click"]
        #expect(
            names.map(MermaidText.name) == [
                "a#58;b#59;c#35;d", "#115;ection one", "#84;itle", "#50;026-01-01", "unnamed", "unnamed",
                "#53;0 #37;#37;",
                "#99;lick",
            ])
        for line in Self.timelines[7].mermaid(title: Self.awkwardName).split(separator: "\n").dropFirst(5) {
            #expect(line.count { $0 == ":" } == 1)
        }
    }

    @Test("A gantt chart counts in a unit in which its length has some digits") func mermaidUnits() {
        let chart = { (end: Duration) in
            OperationTimeline(entries: [Entry(id: OperationID(1), name: "a", running: .zero, finished: end)]).mermaid()
        }
        #expect(chart(.microseconds(70)).contains("(µs)") && chart(.microseconds(70)).contains(", 0, 70\n"))
        #expect(chart(.seconds(2)).contains("(ms)") && chart(.seconds(2)).contains(", 0, 2000\n"))
        #expect(chart(.seconds(20)).contains("axisFormat %s") && chart(.seconds(20)).contains(", 0, 20000\n"))
    }
}
