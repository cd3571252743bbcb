import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationDemo

/// The scenario that shows what surrounds work, as it is printed by the executable.
@Suite struct PolicyScenarioTests {
    @Test("The scenario of policies calls again, stops what takes too long, and keeps two apart")
    func policies() async throws {
        let speed = 4
        let result = await (try DemoProcess.start(["policies", "--log", "--speed", "\(speed)"])).result()
        #expect(result.status == 0 && result.errors == "")
        let section = try #require(PrintedSection.sections(in: result.lines).first)

        func time(_ name: String, _ matches: (PrintedEvent) -> Bool) throws -> Int {
            try #require(section.events.first { $0.name == name && matches($0) }).milliseconds
        }
        #expect(section.names.filter { $0.hasPrefix("call-") }.sorted() == ["call-1", "call-2", "call-3"])
        // Each pause is at least as long as the policy says. Times are printed in whole milliseconds.
        #expect(try time("call-2", \.isStart) - time("call-1", \.isEnd) >= 200 / speed - 1)
        #expect(try time("call-3", \.isStart) - time("call-2", \.isEnd) >= 400 / speed - 1)
        #expect(section.texts(of: "call-3") == ["added to “service”", "started", "finished"])
        #expect(
            section.texts(of: "service").suffix(2) == [
                "attempt 2 failed: The service is busy.; again in \(400 / speed) ms", "finished",
            ])

        #expect(section.texts(of: "slow").prefix(3) == ["enqueued", "started", "cancelled"])
        // The other one waits for the resource, and runs when it has been handed over.
        let waiting = section.events.first { $0.text.hasPrefix("waiting for exclusive access to “database”") }
        let second = try #require(waiting).name
        let first = second == "import" ? "export" : "import"
        #expect(try time(second) { $0.text == "runs" } >= time(first, \.isEnd))
        #expect(section.row(of: second)?.contains("░") == true)
        #expect(section.row(of: "service")?.contains { $0 == "↻" } == true)
        #expect(
            Array(section.rest.suffix(5)) == [
                "service, attempt 1: The service is busy.", "service, attempt 2: The service is busy.",
                "service, attempt 3: it answered.",
                "slow: The operation “slow” took longer than its timeout of 0.15 seconds.",
                "None of this is in the operations themselves.",
            ])
    }
}
