#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// Reports of progress against the ends of those who report, in many orders of their steps.
@Suite("Interleavings of progress", .serialized, .takesTurns, .hangGuard) struct ProgressInterleavingTests {
    private func tryOut(
        _ title: String, _ make: @escaping @Sendable () -> ProgressSubject, _ roles: [Role<ProgressSubject>],
        _ location: SourceLocation = #_sourceLocation
    ) async {
        await expectNoProblems(title, samples: (30, 20), { _ in make() }, roles, location)
    }

    @Test("A report against the end of the child that makes it", arguments: [TestError?.none, .first])
    func aReportAgainstTheEnd(error: TestError?) async {
        await tryOut(
            "report, end \(text(error))", { ProgressSubject() },
            [Role("report") { $0.report() }, Role("end") { $0.end(error) }])
    }

    @Test("A report against the addition of another child")
    func aReportAgainstAnAddition() async {
        await tryOut(
            "report, add", { ProgressSubject() },
            [
                Role("report, end") {
                    $0.report()
                    $0.end()
                }, Role("add") { $0.add() },
            ])
    }
}

/// A compound whose progress is observed.
private final class ProgressSubject: ExplorationSubject, @unchecked Sendable {
    private let compound: CompoundOperation
    private let reporting = ScriptedOperation.idle("reporting")
    private let other = ScriptedOperation.idle("other")
    private let third = ScriptedOperation("third")
    private let progress: Progress
    /// What the children can have reached at most, while they have not ended.
    private let most: [(child: ScriptedOperation, fraction: Double)]
    private let hasThird = Shared(false)
    private let found = Shared<[String]>([])
    private let last = Shared(0.0)

    init() {
        compound = CompoundOperation(name: "compound", operations: [reporting, other])
        progress = compound.progress
        most = [(reporting, 0.5), (other, 0), (third, 0)]
        for object in [compound, reporting, other, third] {
            VirtualThread.expectRelease(of: object, object.displayName)
        }
        compound.asyncCompletionBlock = { [progress, found] error in
            let fraction = VirtualThread.inOneStep { progress.fractionCompleted }
            if error == nil, fraction != 1 { found.change { $0.append("\(fraction) in the completion block") } }
        }
        compound.start()
    }

    func report() {
        VirtualThread.inOneStep { reporting.progress.totalUnitCount = 2 }
        reporting.progress.completedUnitCount = 1
        look()
    }

    func end(_ error: TestError? = nil) {
        reporting.finish(withError: error)
        look()
    }

    func add() {
        hasThird.value = (try? compound.addOperation(third)) != nil
    }

    /// Work that has not been done is not counted, and the fraction never falls.
    private func look() {
        VirtualThread.inOneStep {
            let fraction = progress.fractionCompleted
            // The third may be counted before its addition has returned.
            let bound =
                [2, 3].map { count in
                    most.prefix(count).reduce(0) { $0 + ($1.child.hasOutcome ? 1 : $1.fraction) } / Double(count)
                }.max() ?? 0
            if fraction > bound + 1e-9 { found.change { $0.append("\(fraction), though \(bound) is done") } }
            if fraction < last.value { found.change { $0.append("\(fraction) after \(last.value)") } }
            last.value = fraction
        }
    }

    func endHeld() {
        look()
        end()
        other.finish()
    }

    func endAll() {}

    func problems() -> [String] {
        var problems = found.value
        if !compound.isFinished { problems.append("not finished") }
        if progress.fractionCompleted != 1 { problems.append("\(progress.fractionCompleted)") }
        if hasThird.value, !third.isFinished { problems.append("the third is forgotten") }
        return problems
    }
}

extension AsyncOperation {
    fileprivate var hasOutcome: Bool { withState { $0.lifecycle.outcome != nil } }
}
#endif
