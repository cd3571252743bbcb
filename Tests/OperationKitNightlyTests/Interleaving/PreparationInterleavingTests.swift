#if DEBUG
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// An operation whose preparation takes time, and threads that end the preparation, or the operation, meanwhile.
@Suite("Interleavings of preparations", .serialized, .takesTurns, .hangGuard) struct PreparationInterleavingTests {
    @Test(
        "An operation that is ended or cancelled while it is prepared ends once, and `main()` is not called after that",
        arguments: PreparationSubject.Kind.allCases, PreparationSubject.Step.allCases
    )
    private func everyStep(kind: PreparationSubject.Kind, step: PreparationSubject.Step) async {
        let roles = [
            Role<PreparationSubject>("start") { $0.operation.start() },
            Role<PreparationSubject>("prepared") { $0.preparation.end() },
            Role<PreparationSubject>("\(step)") { $0.take(step) },
        ]
        await expectNoProblems(
            "\(kind) that is prepared, \(step)", samples: (150, 75), { _ in PreparationSubject(kind) }, roles,
            #_sourceLocation)
    }
}

private final class PreparationSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable { case leaf, compound }
    enum Step: CaseIterable { case cancel, finish, cancelTwice, failPreparation }

    /// Ends once the test has said so, whether or not it has begun by then.
    final class HeldPreparation: Preparation {
        private enum State { case open, begun(WeakReference), ended }

        let stage = PreparationStage.binding
        private let state = Locked(State.open)
        let withdrawals = Shared(0)

        func prepare(_ operation: AsyncOperation) -> Bool {
            state.withLock { state in
                if case .ended = state { return true }
                state = .begun(WeakReference(operation))
                return false
            }
        }

        func withdraw() {
            VirtualThread.place("withdraw")
            withdrawals.change { $0 += 1 }
        }

        func end(withError error: TestError? = nil) {
            let previous = state.withLock { exchange(&$0, with: .ended) }
            if case .begun(let reference) = previous { reference.operation?.preparationEnded(withError: error) }
        }
    }

    private struct Record {
        var events: [String] = []
        var problems: [String] = []
        var isStopped = false
    }

    let operation: AsyncOperation
    let preparation = HeldPreparation()
    private let record = Shared(Record())

    init(_ kind: Kind) {
        let record = record
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
        operation.addPreparation(preparation)
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
        case .failPreparation: preparation.end(withError: .first)
        }
        // From here on the work does not start any more, unless it did before.
        let hasNotBegun = VirtualThread.inOneStep { operation.isFinished }
        record.change { record in
            if hasNotBegun { record.isStopped = true }
        }
    }

    func endAll() {
        operation.start()
        preparation.end()
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
        if preparation.withdrawals.value > 1 { problems.append("withdrawn twice") }
        return problems
    }
}
#endif
