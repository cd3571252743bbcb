import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

#if canImport(FoundationXML)
import FoundationXML
#endif

@Suite("Timelines as SVG", .hangGuard) struct TimelineSVGTests {
    private typealias Entry = OperationTimeline.Entry

    /// Keeps the elements, and the texts in them.
    private final class Reader: NSObject, XMLParserDelegate {
        struct Element {
            let name: String
            let attributes: [String: String]
            var text = ""

            func number(_ attribute: String) -> Double { attributes[attribute].flatMap(Double.init) ?? .nan }
        }

        private(set) var elements: [Element] = []
        private var open: [Int] = []

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            open.append(elements.count)
            elements.append(Element(name: name, attributes: attributes))
        }

        func parser(
            _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
        ) {
            open.removeLast()
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) {
            if let last = open.last { elements[last].text += string }
        }

        var texts: [String] { elements.map(\.text) }

        func elements(_ style: String) -> [Element] { elements.filter { $0.attributes["class"] == style } }

        func text(_ text: String) -> Element? { elements.first { $0.name == "text" && $0.text == text } }
    }

    private func read(_ svg: String) -> Reader? {
        let reader = Reader()
        let parser = XMLParser(data: Data(svg.utf8))
        parser.delegate = reader
        return parser.parse() ? reader : nil
    }

    @Test(
        "The SVG of any timeline is well formed, with colors for light and dark",
        arguments: OperationTimeline.all.indices)
    func wellFormed(number: Int) throws {
        let timeline = OperationTimeline.all[number]
        let title = TimelineDocumentTests.endings.joined()
        for svg in [timeline.svg(), timeline.svg(width: 0, maximumRows: 0, title: title, end: .zero)] {
            let reader = try #require(read(svg), "\(svg.prefix(2_000))")
            #expect(
                reader.elements.count { $0.name == "svg" } == 1 && reader.elements.count { $0.name == "style" } == 1)
            #expect(svg.contains("@media (prefers-color-scheme: dark)"))
            let rectangles = reader.elements.filter { $0.name == "rect" }
            #expect(rectangles.allSatisfy { $0.number("width") >= 1 && $0.number("height") >= 1 })
            #expect(!svg.contains("<script") && !svg.contains("href"))
        }
    }

    @Test("The SVG has a title, marks all that happened to operations and how long they took, and says it in tooltips")
    func svgMarks() throws {
        let reader = try #require(read(OperationTimeline.sample.svg(title: "A sync <1>")))
        let title = try #require(reader.text("A sync <1>"))
        #expect(title.attributes["class"] == "title" && title.number("y") < 24)
        let times = reader.elements.filter { $0.name == "text" && $0.attributes["text-anchor"] == "end" }.map(\.text)
        #expect(times == ["3 s", "1 s", "1.5 s", "500 ms", "700 ms", "800 ms", "2.6 s"])
        // One in the drawing and one in the legend, but for what occurs twice.
        let expected = [
            "waiting": 4, "failed": 3, "cancelled": 2, "skipped": 2, "unfinished": 2, "critical": 2, "retry": 2,
        ]
        for (style, count) in expected { #expect(reader.elements(style).count == count, "\(style)") }
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

    @Test("Operations that have no row are counted, and the size depends on the rows") func svgOthers() throws {
        let svg = OperationTimeline.wide(300).svg(maximumRows: 101)
        let reader = try #require(read(svg))
        #expect(reader.texts.contains("200 others are not shown.") && reader.texts.contains("item 99"))
        #expect(!reader.texts.contains("item 100"))
        #expect(OperationTimeline.wide(3_000).svg(maximumRows: 101).utf8.count < 3 * svg.utf8.count)
    }

    @Test("Bars end at the right end, and what begins after that is not drawn") func rightEnd() throws {
        let timeline = OperationTimeline(entries: [
            .child(1, "first", (0, 4_000)) { $0.parent = nil },
            .child(2, "second", (6_000, 10_000)) { $0.parent = nil },
            .child(3, "last", (9_999, 10_000)) { $0.parent = nil },
        ])
        for (end, count) in [(nil, 3), (.seconds(5), 1), (.seconds(10), 3)] as [(Duration?, Int)] {
            let reader = try #require(read(timeline.svg(width: 1_164, end: end)))
            // Without those in the legend.
            let bars = reader.elements("executing").filter { $0.number("y") < 108 }
            #expect(bars.count == count && bars.allSatisfy { $0.number("x") + $0.number("width") <= 1_086 })
        }
    }

    @Test("No text of a narrow drawing covers another one") func narrow() throws {
        let reader = try #require(read(OperationTimeline.sample.svg(width: 200)))
        let texts = reader.elements.filter { $0.name == "text" }
        #expect(Set(texts.map { [$0.number("x"), $0.number("y")] }).count == texts.count)
    }

    // MARK: - Texts

    @Test("Names end before the bars, however wide their letters are", arguments: [200, 300, 960])
    func names(width: Int) throws {
        // The width of a letter of 12 pixels in the widest of the usual fonts.
        let letters: [(Character, Double)] = [
            ("M", 10.4), ("W", 11.9), ("m", 11.7), ("w", 9.8), ("@", 12), ("%", 11.4), ("…", 12), ("O", 9.4),
            ("e", 7.4), ("i", 3.3), ("4", 7.6), ("漢", 12), ("🚀", 15),
        ]
        let widths = Dictionary(uniqueKeysWithValues: letters)
        let timeline = OperationTimeline(
            entries: letters.enumerated().map { number, letter in
                Entry(
                    id: OperationID(UInt64(number + 1)), name: String(repeating: letter.0, count: 100),
                    running: .zero, finished: .seconds(1))
            })
        let reader = try #require(read(timeline.svg(width: width)))
        let bars = reader.elements("executing").prefix(letters.count).map { $0.number("x") }
        let names = reader.elements.filter { $0.name == "text" && $0.attributes["class"] == nil }
        #expect(names.count == letters.count && Set(bars).count == 1)
        for name in names {
            let end = name.number("x") + name.text.reduce(0) { $0 + (widths[$1] ?? .infinity) }
            #expect(end < bars[0], "\(name.text)")
            #expect(name.text.count >= 3)
        }
    }

    // MARK: - Critical path

    /// The frames and the lines of a drawing, without the frame in the legend, with places from 0 to 1,000.
    private func path(_ timeline: OperationTimeline) throws -> (frames: [[Double]], lines: [String]) {
        let reader = try #require(read(timeline.svg(width: 1_164)))
        let frames = reader.elements("critical").dropLast().map { [$0.number("x") - 86, $0.number("width")] }
        return (frames, reader.elements("path").compactMap { $0.attributes["d"] })
    }

    @Test("Frames are around the parts of bars that are on the critical path, which lines connect") func frames() throws
    {
        // The composite is on the path before its children start and after the last one ends.
        let timeline = OperationTimeline(entries: [
            Entry(
                id: OperationID(1), name: "all", started: .zero, running: .milliseconds(100),
                finished: .milliseconds(1_000), outcome: .success, isComposite: true),
            .child(2, "first", (100, 400)) { $0.added = nil },
            .child(3, "other", (100, 300)) { $0.added = nil },
            .child(4, "second", (500, 800), after: [2]) { $0.added = nil },
        ])
        let (frames, lines) = try path(timeline)
        #expect(frames == [[0, 100], [800, 200], [100, 300], [500, 300]])
        // Down to the first child, along the delay of the second one, and back up.
        #expect(lines == ["M186 58V78h0", "M486 78V118h100", "M886 118V58h0"])
    }

    // MARK: - Documentation

    @Test("The picture in the documentation is what the code draws") func picture() throws {
        let path = "Sources/OperationKitTimelines/OperationKitTimelines.docc/Resources/timeline.svg"
        let drawing = OperationTimeline.picture.svg(width: 800, title: "A timeline of an import")
        let file = BuildProducts.repository.appendingPathComponent(path)
        if ProcessInfo.processInfo.environment["UPDATE_PICTURES"] != nil { try Data(drawing.utf8).write(to: file) }
        let isCurrent = try Data(contentsOf: file) == Data(drawing.utf8)
        #expect(isCurrent, "To draw \(path) again, run: UPDATE_PICTURES=1 swift test --filter TimelineSVGTests")
    }
}
