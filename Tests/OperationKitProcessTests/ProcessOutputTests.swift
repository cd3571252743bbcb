import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

@testable import OperationKitProcess

/// Which part of what comes through the pipes counts.
@Suite("Outputs of processes", .hangGuard)
struct ProcessOutputTests {
    private let queue = OperationQueue()

    // MARK: - Lines and cancellation

    enum Ending: CaseIterable, Sendable { case signal, accepted, afterExit, finishedByOthers }

    @Test("No line comes after a cancellation, however the program ends", arguments: Ending.allCases)
    func linesAfterCancellation(_ ending: Ending) async throws {
        let (began, goOn, lines) = (Gate(), Gate(), EventLog())
        let script =
            switch ending {
            case .signal, .finishedByOthers: "yes"
            case .accepted: "trap 'echo saved; exit 0' TERM; seq 1000; while true; do sleep 0.02; done"
            case .afterExit: "seq 1000; printf end"
            }
        let operation = shell(script)
        operation.standardOutput = .lines { line in
            lines.add(line)
            began.open()
            goOn.pass()
        }
        queue.addOperation(operation)
        await began.opened()
        if ending == .afterExit { await eventually("it has not exited") { operation.processIdentifier == nil } }
        if ending == .finishedByOthers { operation.finish(withError: TestError.first) } else { operation.cancel() }
        goOn.open()
        switch ending {
        case .signal: await #expect(throws: CancellationError.self) { try await operation.finished() }
        case .finishedByOthers: await #expect(throws: TestError.self) { try await operation.finished() }
        case .accepted, .afterExit: try await operation.finished()
        }
        await eventually("the program goes on") { operation.processIdentifier == nil }
        #expect(lines.events.count == 1)
    }
}
