#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An operation with a gate that takes time, and threads that open it, or the operation, meanwhile.
@Suite("Interleavings of start gates", .serialized, .takesTurns, .hangGuard) struct StartGateInterleavingTests {
    @Test(
        "An operation that is ended or cancelled while it is at a gate ends once, and `main()` is not called after that",
        arguments: StartGateSubject.Kind.allCases, StartGateSubject.Step.allCases
    )
    private func everyStep(kind: StartGateSubject.Kind, step: StartGateSubject.Step) async {
        let roles = [
            Role<StartGateSubject>("start") { $0.operation.start() },
            Role<StartGateSubject>("open") { $0.gate.open() },
            Role<StartGateSubject>("\(step)") { $0.take(step) },
        ]
        await expectNoProblems(
            "\(kind) at a gate, \(step)", samples: (150, 75), { _ in StartGateSubject(kind) }, roles,
            #_sourceLocation)
    }
}

private final class StartGateSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable { case leaf, compound }
    enum Step: CaseIterable { case cancel, finish, cancelTwice, failGate }

    private struct Record {
        var events: [String] = []
        var problems: [String] = []
        var isStopped = false
    }

    let operation: AsyncOperation
    let gate: HeldGate
    private let gateLog = EventLog()
    private let record = Shared(Record())

    init(_ kind: Kind) {
        let record = record
        gate = HeldGate("gate", gateLog, willWithdraw: { VirtualThread.place("withdraw") })
        let main: ScriptedOperation.Script = { operation in
            record.change { record in
                record.events.append("main")
                if record.isStopped { record.problems.append("main() is called after the end") }
            }
            VirtualThread.place("main")
            operation.finish()
        }
        let work = ScriptedOperation(main: main)
        operation = kind == .leaf ? work : CompoundOperation(operations: [work])
        VirtualThread.expectRelease(of: operation, "the operation")
        operation.addGate(gate)
        operation.asyncCompletionBlock = { [unowned operation] error in
            VirtualThread.place("completion")
            let isFinished = VirtualThread.inOneStep { operation.isFinished }
            record.change {
                $0.events.append("completion")
                if isFinished { $0.problems.append("completed after isFinished") }
            }
        }
    }

    func take(_ step: Step) {
        switch step {
        case .cancel, .cancelTwice:
            operation.cancel()
            if step == .cancelTwice { operation.cancel() }
        case .finish: operation.finish(withError: TestError.first)
        case .failGate: gate.open(withError: TestError.first)
        }
        // From here on the work does not start any more, unless it did before.
        let hasNotBegun = VirtualThread.inOneStep { operation.isFinished }
        record.change { record in
            if hasNotBegun { record.isStopped = true }
        }
    }

    func endAll() {
        operation.start()
        gate.open()
    }

    func problems() -> [String] {
        let record = record.value
        var problems = record.problems
        if !operation.isFinished { problems.append("not finished: \(operation.debugDescription)") }
        for event in ["main", "completion"] where record.events.count(where: { $0 == event }) > 1 {
            problems.append("\(event) twice")
        }
        if !record.events.contains("completion") { problems.append("no completion") }
        if operation.error == nil, !record.events.contains("main") { problems.append("success without main()") }
        if gateLog.count(of: "withdraw gate") > 1 { problems.append("withdrawn twice") }
        return problems
    }
}
#endif
