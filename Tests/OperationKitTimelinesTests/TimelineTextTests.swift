import OperationKitTestSupport

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Timelines as text", .hangGuard) struct TimelineTextTests {
    private typealias Entry = OperationTimeline.Entry

    private func cells(_ line: Substring) -> Int { line.cells }

    @Test("Bars show what waited, worked, failed, was cancelled, was tried again and has not ended") func sample() {
        #expect(
            OperationTimeline.sample.text(columns: 80) == """
                Sync                             ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━!   3 s
                  login                          ███████████                         1 s
                  page 1 of the very long list   ··········░░░░░░███████████!        1.5 s
                  page 2                         ··········███████                   500 ms
                  page 3 & <co>                  ················████████×           700 ms
                  upload                         ························███↻█████   800 ms
                  notify                         ····························─
                other                          ◆      ████████████████████████████▶  2.6 s
                                                 0 s                  2 s
                ━ has children  █ executing  ░ waiting  · not started  ↻ tried again  ! failed
                × cancelled  ─ did not run  ▶ unfinished  ◆ critical path
                2 other operations were not recorded.
                """)
    }

    @Test("In few columns, names are cut in the middle, times are left out and the legend has more lines") func narrow()
    {
        let text = OperationTimeline.sample.text(columns: 20)
        #expect(
            text.hasPrefix(
                """
                Sync       ━━━━━━━━!
                  login    ███
                  pag…st   ··░░███!
                  page 2   ··███
                  pag…o>   ····██×
                  upload   ······█↻█
                  notify   ·······─
                other    ◆  ███████▶
                           0 s
                ━ has children
                █ executing

                """))
        #expect(text.split(separator: "\n").count == 21 && text.hasSuffix("\n2 other operations\nwere not recorded."))
        #expect(OperationTimeline.sample.text(columns: -5) == OperationTimeline.sample.text(columns: 20))
    }

    @Test("No line is wider than the columns", arguments: [20, 21, 40, 59, 60, 80, 200]) func widths(columns: Int) {
        let timelines: [OperationTimeline] = [
            .sample, .wide(1), .wide(10), .wide(300), .plain((0, 0)), .plain((5, 5), (5, 5)), .plain((0, 3_599_999)),
            OperationTimeline(entries: [], droppedCount: 1_000),
            OperationTimeline(entries: [Entry(id: OperationID(1), name: "漢字の名前👩‍👩‍👧‍👦とても長い")]),
        ]
        for timeline in timelines {
            for line in timeline.text(columns: columns).split(separator: "\n") {
                #expect(cells(line) <= columns, "\(line)")
                #expect(line.last != " ")
            }
        }
    }

    @Test("If there are more operations than rows, a line says how many others there are") func maximumRows() {
        let lines = OperationTimeline.wide(300).text(columns: 60, maximumRows: 39).split(separator: "\n")
        #expect(lines[38].hasPrefix("  item 37") && lines.last == "262 others are not shown.")
        #expect(OperationTimeline.wide(1_000).text(maximumRows: 1).hasSuffix("\n1000 others are not shown."))
        #expect(OperationTimeline.wide(1).text(maximumRows: 0).hasSuffix("\n1 other is not shown."))
        #expect(!OperationTimeline.wide(3).text(maximumRows: 4).contains("other"))
    }

    @Test("What has failed or still executes has a row before what has succeeded, or waits") func trouble() {
        var entries = OperationTimeline.wide(300).entries
        (entries[100].outcome, entries[100].finished) = (nil, nil)
        (entries[150].started, entries[150].running) = (nil, nil)
        (entries[150].outcome, entries[150].finished) = (nil, nil)
        (entries[200].outcome, entries[250].outcome) = (.failed("first"), .skipped("second"))
        let text = OperationTimeline(entries: entries).text(maximumRows: 4)
        let names = [1, 100, 150, 200, 250].filter { text.contains(entries[$0].name + " ") }
        #expect(names == [1, 100, 200])
    }

    @Test("Labels don't touch marks and bars, and work that takes no time takes a cell") func zeroDurations() {
        let lines = OperationTimeline.plain((0, 0), (4, 4)).text(columns: 30).split(separator: "\n")
        #expect(lines[0] == "operation 1   █" && lines[1] == "operation 2 ◆ " + String(repeating: " ", count: 15) + "█")
        #expect(OperationTimeline.plain((0, 0)).text(columns: 20).hasPrefix("oper…n 1 ◆ █\n"))
    }

    @Test("Of two timelines that are drawn with the same end, the same times have the same place") func commonScale() {
        let text = OperationTimeline.plain((0, 10)).text(columns: 40, end: .milliseconds(20))
        let bar = text.split(separator: "\n")[0].filter { $0 == "█" }
        #expect(bar.count == 13)
        let cut = OperationTimeline.plain((0, 10), (8, 10)).text(columns: 40, end: .milliseconds(5))
        #expect(cut.split(separator: "\n")[0].filter { $0 == "█" }.count == 26)
        #expect(!cut.split(separator: "\n")[1].contains("█"))
        let failed = OperationTimeline(entries: [
            .child(1, "a", (0, 10)) { ($0.parent, $0.outcome) = (nil, .failed("b")) }
        ])
        #expect(failed.text().contains("!") && !failed.text(columns: 40, end: .milliseconds(5)).contains("!"))
    }

    @Test("Colors are escape sequences around the bars, and change nothing else") func colors() {
        let colored = OperationTimeline.sample.text(colors: true)
        #expect(colored.contains("\u{1B}[31m!\u{1B}[0m") && colored.contains("\u{1B}[32m█"))
        #expect(colored.replacing(/\u{1B}\[\d+m/, with: "") == OperationTimeline.sample.text())
    }

    @Test("Wide characters take two cells, joined and combined ones no more than their picture") func characterWidths()
    {
        let widths = ["a", "é", "e\u{301}", "漢", "👍", "👩‍👩‍👧", "🇩🇪", "❤️", "ｱ", "한", ""].map(\.cells)
        #expect(widths == [1, 1, 1, 2, 2, 2, 2, 2, 1, 2, 0])
        let single: [Character] = ["\r\n", "\u{301}", "…", "—", "é", "漢", "❤️"]
        #expect(single.map(\.cells) == [0, 0, 1, 1, 1, 2, 2])
        #expect(single.dropFirst().map { SVGDrawing.width(of: $0) } == [0, 12, 12, 9, 16, 16])
        #expect("i W%Aa".map { SVGDrawing.width(of: $0) } == [5, 5, 12, 12, 9, 8])
        #expect("漢字漢字漢字".cut(to: 7) == "漢…字")
        #expect((0...3).map { "abcdef".cut(to: $0) } == ["", "…", "a…", "a…f"])
    }

    @Test(
        "The axis has round times",
        arguments: [
            (Duration.zero, "0 ns, 1 ns"), (.nanoseconds(700), "0 ns, 200 ns, 400 ns, 600 ns"),
            (.microseconds(1_500), "0 µs, 500 µs, 1000 µs, 1500 µs"),
            (.milliseconds(700), "0 ms, 200 ms, 400 ms, 600 ms"),
            (.seconds(3), "0 s, 1 s, 2 s, 3 s"), (.seconds(100), "0 s, 30 s, 60 s, 90 s"),
            (.seconds(1_000), "0 min, 5 min, 10 min, 15 min"), (.seconds(40_000), "0 h, 3 h, 6 h, 9 h"),
            (.seconds(300_000), "0 d, 1 d, 2 d, 3 d"), (.latest, "0 d, 10000 d, 20000 d"),
        ])
    func axis(end: Duration, expected: String) {
        let ticks = TimelineScale(end: end, length: 100).ticks(atMost: 4).map(\.text)
        #expect(ticks.joined(separator: ", ") == expected)
    }
}
