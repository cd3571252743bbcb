import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// The scenario that shows what surrounds work, as it is printed by the executable.
@Suite struct PolicyScenarioTests {
    @Test("The scenario of policies calls again, stops what takes too long, and keeps two apart")
    func policies() async throws {
        let speed = 4
        let result = await (try DemoProcess.start(["policies", "--speed", "\(speed)"])).result()
        #expect(result.status == 0 && result.errors == "")
        let section = try #require(PrintedSection.sections(in: result.lines).first)

        func time(_ stage: Stage, of name: String) throws -> Int {
            try #require(section.events.first { $0.name == name && $0.stage == stage }).milliseconds
        }
        #expect(section.names.filter { $0.hasPrefix("call-") }.sorted() == ["call-1", "call-2", "call-3"])
        // Each pause is at least as long as the policy says. Times are printed in whole milliseconds.
        #expect(try time(.started, of: "call-2") - time(.workFailed, of: "call-1") >= 200 / speed - 1)
        #expect(try time(.started, of: "call-3") - time(.workFailed, of: "call-2") >= 400 / speed - 1)
        #expect(section.stages(of: "call-3").contains(.workFinished))
        #expect(section.stages(of: "service").suffix(3) == [.workFinished, .asyncCompletion, .completion])

        #expect(
            section.stages(of: "slow") == [
                .enqueued, .started, .mainReturned, .workCancelled, .asyncCompletion, .completion,
            ])
        #expect(!section.overlaps(["import", "export"]))
        #expect(
            Array(section.rest.suffix(4)) == [
                "service, attempt 1: The service is busy.", "service, attempt 2: The service is busy.",
                "service, attempt 3: it answered.",
                "slow: The operation “slow” took longer than its timeout of 0.15 seconds.",
            ])
    }
}
