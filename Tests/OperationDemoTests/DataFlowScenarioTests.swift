import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// The scenarios that show values moving, as they are printed by the executable.
@Suite struct DataFlowScenarioTests {
    private static func section(_ scenario: String) async throws -> PrintedSection {
        let result = await (try DemoProcess.start([scenario, "--log", "--speed", "4"])).result()
        #expect(result.status == 0 && result.errors == "")
        return try #require(PrintedSection.sections(in: result.lines).first)
    }

    /// What an operation has said, apart from its states.
    private func notes(_ section: PrintedSection, _ name: String) -> [String] {
        section.texts(of: name).filter { text in
            !["enqueued", "started", "finished"].contains(text)
                && !["added ", "failed: "].contains { text.hasPrefix($0) }
        }
    }

    @Test("The chain hands its values on, says so, and moves its progress bar") func chain() async throws {
        let section = try await Self.section("chain")
        #expect(notes(section, "choose") == ["gets summer", "makes summer/beach.jpg"])
        #expect(notes(section, "upload") == ["gets summer/beach.jpg", "makes https://photos.example.org/16"])
        #expect(notes(section, "clean-up") == ["gets summer/beach.jpg", "makes summer/beach.jpg removed"])
        let percents = notes(section, "publish").compactMap { Int($0.split(separator: " ").dropFirst().first ?? "") }
        #expect(percents == [4, 8, 13, 17, 33, 50, 67, 83, 88, 92, 96, 100])
        #expect(section.texts(of: "publish").last == "finished")
        #expect(
            try #require(section.execution(of: "upload")).lowerBound
                > #require(section.execution(of: "choose")).upperBound)
        #expect(section.rest.contains("choose gets summer and makes summer/beach.jpg."))
    }

    @Test("A waterfall ends with a model, or at its failure") func waterfall() async throws {
        let section = try await Self.section("waterfall")
        #expect(notes(section, "good-resp") == ["gets GET users/1", "makes name=Ada"])
        #expect(notes(section, "bad-resp") == ["gets GET users/none", "makes 404"])
        #expect(section.texts(of: "bad-parse").last == "failed: “404” is no user.")
        #expect(section.texts(of: "bad").last == "failed: “404” is no user.")
        #expect(section.texts(of: "good").last == "finished")
        let ends = ["good ends with the model of Ada.", "bad ends without a model: “404” is no user."]
        #expect(Array(section.rest.suffix(3).prefix(2)) == ends)
    }

    @Test("The binding hands over what was fetched") func glue() async throws {
        let section = try await Self.section("glue")
        #expect(notes(section, "fetch") == ["looks for users", "found Ada and Grace"])
        #expect(notes(section, "process") == ["gets Ada and Grace", "greeted 2 users"])
        #expect(
            try #require(section.execution(of: "process")).lowerBound
                > #require(section.execution(of: "fetch")).upperBound)
        #expect(section.rest.contains("process was given the users that fetch found: Ada and Grace."))
    }
}
