import OperationKitTestSupport

@testable import OperationDemo

/// The scenarios as they are printed by the executable.
@Suite(.hangGuard) struct ScenarioTests {
    /// The sections that the demo prints for these arguments, with the log.
    private static func sections(_ arguments: [String], speed: Double = 4) async throws -> [PrintedSection] {
        let result = try await ProductProcess("OperationDemo", arguments + ["--log", "--speed", "\(speed)"]).result()
        #expect(result.status == 0 && result.errors == "")
        #expect(!result.output.contains("\u{1B}"), "Escape codes have no place in a pipe")
        return PrintedSection.sections(in: result.lines)
    }

    /// The sections, after up to two more runs at lower speeds. A busy machine may need longer than the work takes.
    private static func sections(
        _ arguments: [String], until isMet: ([PrintedSection]) -> Bool
    ) async throws -> [PrintedSection] {
        for speed in [1, 0.2] {
            let sections = try await sections(arguments, speed: speed)
            if isMet(sections) { return sections }
        }
        return try await sections(arguments, speed: 0.04)
    }

    @Test("Without arguments the tour is given, drawn and without a log") func noArguments() async throws {
        let result = try await ProductProcess.run("OperationDemo")
        #expect(result.status == 0)
        let sections = PrintedSection.sections(in: result.lines)
        #expect(sections.map(\.title).map { $0.prefix(12) } == ["tour, serial", "tour, concur"])
        #expect(sections.allSatisfy { $0.events.isEmpty && $0.row(of: "compound-3")?.contains("███") == true })
        #expect(result.lines.first?.hasPrefix("tour: one operation of each kind") == true)
        #expect(result.lines.prefix { !$0.isEmpty }.contains { $0.hasPrefix("See that ") })
        #expect(result.lines.last { !$0.isEmpty }?.hasPrefix("The same work took ") == true)
    }

    @Test("The tour shows each kind of operation: correct ones overlap on a concurrent queue, which is faster, only")
    func tour() async throws {
        let names = ["sync", "async", "compound-1", "compound-2", "compound-3"]
        func isFaster(_ sections: [PrintedSection]) -> Bool {
            let times = sections.last?.rest.last?.split(separator: " ").compactMap { Int($0) } ?? []
            return sections.count == 2 && sections[1].overlaps(names) && times.count == 2 && times[0] > times[1]
        }
        let sections = try await Self.sections(["tour"], until: isFaster)
        #expect(isFaster(sections) && !sections[0].overlaps(names))
        for section in sections {
            for name in ["sync", "naive", "async", "compound"] {
                #expect(section.texts(of: name) == ["enqueued", "started", "finished"])
            }
            for number in 1...3 {
                #expect(section.texts(of: "compound-\(number)") == ["added to “compound”", "started", "finished"])
            }
            #expect(section.texts(of: "naive (work)") == ["started", "finished"] && section.names.count == 8)
        }
        let narrow = try await Self.sections(["async", "--mode=concurrent", "--width=1"])[0]
        #expect(!narrow.overlaps(["async-1", "async-2", "async-3"]))
    }

    @Test("Work of naive operations overlaps on a serial queue, and findings say so") func naiveOperations()
        async throws
    {
        let names = ["naive-1", "naive-2", "naive-3"]
        func early(_ name: String, _ section: PrintedSection) -> Int {
            (section.end(of: "\(name) (work)")?.milliseconds ?? 0) - (section.end(of: name)?.milliseconds ?? .max)
        }
        func isEarly(_ sections: [PrintedSection]) -> Bool {
            sections[0].overlaps(names.map { $0 + " (work)" }) && names.allSatisfy { early($0, sections[0]) > 0 }
        }
        let section = try await Self.sections(["naive", "--mode", "serial"], until: isEarly)[0]
        #expect(isEarly([section]))
        for name in names {
            #expect(section.rest.contains("\(name) was finished \(early(name, section)) ms before its work."))
        }
        #expect(section.rest.contains { $0.hasPrefix("A queue waits for isFinished, not for work.") })
    }

    @Test("The critical path is named and marked, and what is not on it is not") func criticalPath() async throws {
        let section = try await Self.sections(["critical-path"], speed: 2)[0]
        let steps = section.rest.drop { $0 != "The critical path:" }.filter { $0.hasPrefix("  “") }
            .compactMap { $0.split { "“”".contains($0) }.dropFirst().first.map(String.init) }
        // Which of the two has the simulator first is up to the threads.
        let tests = section.row(of: "ui-test")?.contains("░") == true ? ["test", "ui-test"] : ["ui-test", "test"]
        let path = ["fetch", "compile-core", "compile-app"] + tests + ["package"]
        #expect(steps.reduce(into: []) { if $0.last != $1 { $0.append($1) } } == path)
        for name in path + ["build"] { #expect(section.row(of: name)?.contains("◆") == true, "\(name)") }
        for name in ["docs", "lint"] { #expect(section.row(of: name)?.contains("◆") == false, "\(name)") }
        #expect(section.row(of: tests[1])?.contains("░") == true)
        #expect(section.rest.filter { $0.contains(" without the work of “") }.count == 3)
        #expect(section.rest.contains { $0.hasSuffix(" without the work of “compile-core”") })
    }

    @Test("A collection is synced with each of the four strategies, and what failed once more")
    func collection() async throws {
        let sections = try await Self.sections(["collection"])
        let strategies = ["SequentialItem", "SequentialBatch", "ParallelItem", "ParallelBatch"]
        #expect(sections.count == 4)
        for (section, strategy) in zip(sections, strategies) {
            #expect(section.title.hasPrefix("collection, \(strategy)Operation:"))
            let isBatch = strategy.hasSuffix("Batch")
            let failed = isBatch ? [6, 7, 8, 9, 10, 16, 17, 18, 19, 20] : [9, 18]
            let names = failed.map { "image-\($0 < 10 ? "0" : "")\($0)" }.joined(separator: ", ")
            let text = section.rest.joined(separator: " ")
            #expect(text.contains("\(failed.count) of 24 images failed after ") && text.contains(" ms: \(names)."))
            #expect(section.rest.contains("Tried again, 0 of \(failed.count) images failed."))
            #expect(section.events.count(where: \.isStart) == (isBatch ? 7 : 26), "Both attempts")
            #expect(section.events.count { $0.text == "failed: The connection was lost." } == 2)
            // How many are at work together is up to the machine.
            var running = 0
            let counts = section.events.map { event in
                running += event.isStart ? 1 : event.isEnd ? -1 : 0
                return running
            }
            #expect((strategy.hasPrefix("Parallel") ? 2...4 : 1...1).contains(counts.max() ?? 0))
        }
    }

    /// What each scenario has to say at its end, and marks in the rows of its operations.
    private static let ends: [(scenario: String, lines: [String], marks: [Character: [String]])] = [
        ("chain", ["choose gets summer and makes summer/beach.jpg."], [:]),
        (
            "waterfall",
            ["good ends with the model of Ada.", "bad ends without a model: “404” is no user."], ["!": ["bad-parse"]]
        ),
        ("glue", ["process was given the users that fetch found: Ada and Grace."], [:]),
        (
            "cancel",
            [
                "before-start never ran.", "in-flight was stopped.", "whole-1 succeeded.", "whole-2 was stopped.",
                "whole-3 never ran.",
            ],
            ["×": ["before-start", "in-flight", "whole ", "whole-2", "whole-3"]]
        ),
        (
            "errors",
            [
                "  suboperationFailure of “publish”: 3 errors",
                "    child 1, “caption”: The caption has more than 280 characters.",
                "        child 0, “disk”: The disk is full: 12 MB are missing.", "As NSError:",
            ],
            ["!": ["caption", "disk", "backup", "upload", "publish"]]
        ),
        (
            "policies",
            [
                "service, attempt 1: The service is busy.", "service, attempt 2: The service is busy.",
                "service, attempt 3: it answered.",
                "slow: The operation “slow” took longer than its timeout of 0.15 seconds.",
            ],
            ["↻": ["service"]]
        ),
    ]

    @Test("A scenario says at its end what there was to see, and marks it", arguments: ends.indices)
    func endOfAScenario(index: Int) async throws {
        let (scenario, lines, marks) = Self.ends[index]
        let section = try await Self.sections([scenario])[0]
        for line in lines { #expect(section.rest.contains(line), "\(line)") }
        for (mark, names) in marks {
            for name in names { #expect(section.row(of: name)?.contains(mark) == true, "\(name)") }
        }
    }
}
