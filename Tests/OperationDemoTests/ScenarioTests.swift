import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// The scenarios as they are printed by the executable.
@Suite struct ScenarioTests {
    private static let syncStages: [Stage] = [.enqueued, .started, .workFinished, .mainReturned, .completion]
    private static let naiveStages: [Stage] = [.enqueued, .started, .mainReturned, .completion, .workFinished]
    private static let asyncStages: [Stage] = [
        .enqueued, .started, .mainReturned, .workFinished, .asyncCompletion, .completion,
    ]
    private static let compoundStages: [Stage] = [.enqueued, .started, .workFinished, .asyncCompletion, .completion]

    /// The sections that the demo prints for these arguments. Where the order of the lines depends on which operation
    /// is faster, pass the normal speed, 1, which leaves the demo its time.
    private static func sections(_ arguments: String..., speed: Int = 4) async throws -> [PrintedSection] {
        let process = try DemoProcess.start(arguments + ["--speed", "\(speed)"])
        let result = await process.result()
        #expect(result.status == 0)
        #expect(result.errors == "")
        #expect(!result.output.contains("\u{1B}"), "Escape codes have no place in a pipe")
        return PrintedSection.sections(in: result.lines)
    }

    @Test("Without arguments the tour is given") func noArguments() async throws {
        let result = try await DemoProcess.run()
        #expect(result.status == 0)
        let sections = PrintedSection.sections(in: result.lines)
        #expect(sections.map(\.title).map { $0.prefix(12) } == ["tour, serial", "tour, concur"])
    }

    @Test("The tour shows the stages of each kind of operation in their order") func tour() async throws {
        let sections = try await Self.sections("tour", speed: 1)
        #expect(sections.count == 2)
        for section in sections {
            #expect(section.stages(of: "sync") == Self.syncStages)
            #expect(section.stages(of: "naive") == Self.naiveStages)
            #expect(section.stages(of: "async") == Self.asyncStages)
            #expect(section.stages(of: "compound") == Self.compoundStages)
            for child in 1...3 { #expect(section.stages(of: "compound-\(child)") == Self.asyncStages) }
            #expect(section.names.count == 7)
        }
    }

    @Test("The times of events never decrease") func times() async throws {
        for section in try await Self.sections("tour") {
            let times = section.events.map(\.milliseconds)
            #expect(times == times.sorted())
        }
    }

    @Test("A compound is complete after its children have worked") func compound() async throws {
        for section in try await Self.sections("compound") {
            for compound in ["album", "video"] {
                let end = try #require(section.work(of: compound)).upperBound
                for child in 1...3 {
                    #expect(try #require(section.work(of: "\(compound)-\(child)")).upperBound < end)
                }
            }
        }
    }

    @Test("On a serial queue correct operations never overlap") func serialQueue() async throws {
        let tour = try await Self.sections("tour", "--mode", "serial")[0]
        #expect(!tour.overlaps(["sync", "async", "compound"]))
        #expect(!tour.overlaps(["sync", "async", "compound-1", "compound-2", "compound-3"]))
        #expect(!(try await Self.sections("sync", "--mode", "serial")[0]).overlaps(["sync-1", "sync-2", "sync-3"]))
        #expect(!(try await Self.sections("async", "--mode", "serial")[0]).overlaps(["async-1", "async-2", "async-3"]))
        #expect(!(try await Self.sections("compound", "--mode", "serial")[0]).overlaps(["album", "video"]))
    }

    @Test("On a concurrent queue operations overlap") func concurrentQueue() async throws {
        let tour = try await Self.sections("tour", "--mode", "concurrent", speed: 1)[0]
        #expect(tour.overlaps(["sync", "async", "compound"]))
        #expect(tour.overlaps(["compound-1", "compound-2", "compound-3"]))
    }

    @Test("A concurrent queue of width 1 is serial") func widthOfOne() async throws {
        let section = try await Self.sections("async", "--mode=concurrent", "--width=1")[0]
        #expect(!section.overlaps(["async-1", "async-2", "async-3"]))
    }

    @Test("Naive operations overlap on a serial queue, and remarks say so") func naiveOperations() async throws {
        let section = try await Self.sections("naive", "--mode", "serial", speed: 1)[0]
        let names = ["naive-1", "naive-2", "naive-3"]
        #expect(section.overlaps(names))
        for name in names {
            let end = try #require(section.events.first { $0.name == name && $0.stage == .workFinished })
            let detail = try #require(end.detail)
            #expect(detail.hasPrefix("completion came ") && detail.hasSuffix(" ms before its work finished"))
            let completion = try #require(section.events.first { $0.name == name && $0.stage == .completion })
            #expect(detail.contains(" \(end.milliseconds - completion.milliseconds) ms "))
            #expect(section.rest.contains { $0.hasPrefix("\(name): completion came ") })
        }
    }

    @Test("The timeline has a row for each operation and shows which one completes too early")
    func timeline() async throws {
        for section in try await Self.sections("tour", speed: 1) {
            let rows = section.rest.filter { $0.hasPrefix("  ") && $0.contains("|") }
            for name in section.names { #expect(rows.contains { $0.hasPrefix("  \(name) ") }) }
            #expect(rows.filter { $0.contains("░") && !$0.contains("working") }.map { $0.contains("naive") } == [true])
        }
    }

    @Test(
        "Cancellations before the start, in flight and of a whole compound are shown",
        arguments: ["serial", "concurrent"]
    )
    func cancellation(mode: String) async throws {
        let section = try await Self.sections("cancel", "--mode", mode)[0]
        #expect(section.stages(of: "before-start") == [.enqueued, .cancelCalled, .asyncCompletion, .completion])
        let inFlight: [Stage] = [.enqueued, .started, .mainReturned, .cancelCalled, .workCancelled]
        #expect(section.stages(of: "in-flight") == inFlight + [.asyncCompletion, .completion])
        #expect(section.stages(of: "whole-1") == Self.asyncStages)
        #expect(section.stages(of: "whole-3") == [.enqueued, .asyncCompletion, .completion])
        let whole: [Stage] = [.enqueued, .started, .cancelCalled, .workCancelled, .asyncCompletion, .completion]
        #expect(section.stages(of: "whole") == whole)
    }

    @Test("The errors of a compound are reported as Swift errors and as `NSError`s") func errors() async throws {
        let section = try await Self.sections("errors")[0]
        #expect(section.rest.contains("  suboperationFailure of “publish”: 3 errors"))
        #expect(section.rest.contains("    child 1, “caption”: The caption has more than 280 characters."))
        #expect(section.rest.contains("        child 0, “disk”: The disk is full: 12 MB are missing."))
        let heading = try #require(section.rest.firstIndex(of: "As NSError:"))
        let report = section.rest[(heading + 1)...]
        #expect(report.first?.hasPrefix("  OperationKit.CompoundOperationError, code 1: ") == true)
        #expect(report.contains("      OperationDemo.PublishingError, code 1: The disk is full: 12 MB are missing."))
        #expect(report.filter { $0.hasPrefix("    OperationDemo.PublishingError, code ") }.count == 2)
    }

    @Test("A collection is synced with each of the four strategies, and what failed once more")
    func collection() async throws {
        let sections = try await Self.sections("collection")
        let strategies = sections.map { $0.title.dropFirst("collection, ".count).prefix { $0 != ":" } }
        #expect(
            strategies == [
                "SequentialItemOperation", "SequentialBatchOperation", "ParallelItemOperation",
                "ParallelBatchOperation",
            ])
        for (section, strategy) in zip(sections, strategies) {
            let isBatch = strategy.hasSuffix("BatchOperation")
            let failed = isBatch ? [6, 7, 8, 9, 10, 16, 17, 18, 19, 20] : [9, 18]
            let names = failed.map { "image-\($0 < 10 ? "0" : "")\($0)" }
            #expect(section.rest.contains("\(failed.count) of 24 images failed:"))
            #expect(
                section.rest.filter { $0.hasSuffix(": The connection was lost.") }
                    == names.map {
                        "  \($0): The connection was lost."
                    })
            #expect(section.rest.contains("Tried again, 0 of \(failed.count) images failed."))
            let starts = isBatch ? 7 : 26
            #expect(section.events.filter { $0.stage == .started }.count == starts, "Both attempts")
            #expect(section.events.filter { $0.stage == .workFailed }.count == 2)
            var (running, most) = (0, 0)
            for event in section.events {
                running += event.stage == .started ? 1 : -1
                most = max(most, running)
            }
            #expect(most == (strategy.hasPrefix("Parallel") ? 4 : 1))
        }
    }

    @Test("The mode chooses the strategies of a collection") func collectionMode() async throws {
        let serial = try await Self.sections("collection", "--mode", "serial", speed: 20)
        #expect(serial.count == 2 && serial.allSatisfy { $0.title.contains("Sequential") })
        let parallel = try await Self.sections("collection", "--mode", "concurrent", "--width", "2", speed: 20)
        #expect(parallel.count == 2 && parallel.allSatisfy { $0.title.contains("up to 2 ") })
    }

    @Test("Control-C ends a scenario with status 130") func interruption() async throws {
        let process = try DemoProcess.start(["async", "--speed", "0.01"])
        #expect(await process.hasWritten("started"))
        process.interrupt()
        #expect(await process.result().status == 130)
    }
}
