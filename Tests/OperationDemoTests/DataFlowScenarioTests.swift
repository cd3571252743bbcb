import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// The scenarios that show values moving, as they are printed by the executable.
@Suite struct DataFlowScenarioTests {
    private static func section(_ scenario: String) async throws -> PrintedSection {
        let result = await (try DemoProcess.start([scenario, "--speed", "4"])).result()
        #expect(result.status == 0 && result.errors == "")
        return try #require(PrintedSection.sections(in: result.lines).first)
    }

    private func details(_ section: PrintedSection, _ name: String) -> [String] {
        section.events.filter { $0.name == name }.compactMap(\.detail)
    }

    @Test("The chain hands its values on and moves its progress bar") func chain() async throws {
        let section = try await Self.section("chain")
        #expect(details(section, "choose") == ["gets summer", "makes summer/beach.jpg"])
        #expect(details(section, "upload") == ["gets summer/beach.jpg", "makes https://photos.example.org/16"])
        #expect(details(section, "clean-up") == ["gets summer/beach.jpg", "makes summer/beach.jpg removed"])
        let percents = section.events.filter { $0.name == "publish" && $0.stage == .progress }
            .compactMap { Int($0.detail?.split(separator: " ").dropFirst().first ?? "") }
        #expect(percents == [4, 8, 13, 17, 33, 50, 67, 83, 88, 92, 96, 100])
        #expect(section.stages(of: "publish").last == .completion)
        #expect(try #require(section.work(of: "upload")).lowerBound > #require(section.work(of: "choose")).upperBound)
    }

    @Test("A waterfall ends with a model, or at its failure") func waterfall() async throws {
        let section = try await Self.section("waterfall")
        #expect(details(section, "good-resp") == ["gets GET users/1", "makes name=Ada"])
        #expect(details(section, "good").contains("the result is model of Ada"))
        #expect(details(section, "bad-resp") == ["gets GET users/none", "makes 404"])
        #expect(section.stages(of: "bad-parse").contains(.workFailed))
        #expect(section.stages(of: "bad").contains(.workFailed))
        #expect(!details(section, "bad").contains { $0.hasPrefix("the result") })
    }

    @Test("The binding hands over what was fetched") func glue() async throws {
        let section = try await Self.section("glue")
        #expect(details(section, "fetch") == ["looks for users", "found Ada and Grace"])
        #expect(details(section, "process") == ["gets Ada and Grace", "greeted 2 users"])
        #expect(try #require(section.work(of: "process")).lowerBound > #require(section.work(of: "fetch")).upperBound)
    }
}
