package import Foundation
package import OperationKit
package import Testing

/// Makes standard error a file that cannot be written, or a pipe without a reader, for the rest of the process.
package func makeStandardErrorUnwritable(byPipe: Bool = false) {
    guard byPipe else { return _ = dup2(unsafe open("/dev/null", O_RDONLY), 2) }
    signal(SIGPIPE, SIG_DFL)
    var ends: [Int32] = [-1, -1]
    unsafe pipe(&ends)
    dup2(ends[1], 2)
    close(ends[0])
}

/// Runs a compound, and returns what it reports if it fails.
package func outcome(of compound: CompoundOperation) async -> CompoundOperationError? {
    do { try await OperationQueue().run(compound) } catch { return error as? CompoundOperationError }
    return nil
}

/// The failures in an error of a compound: the index, the name, and how many children did not run because of it.
package func summary(_ error: (any Error)?) -> [String] {
    (error as? CompoundOperationError)?.suboperationErrors.map { "\($0.index) \($0.name) \($0.blockedCount)" } ?? []
}

/// The compound that an error of a cycle is about, and the operations on it.
package func cyclePath(of error: (any Error)?) -> [String]? {
    guard case .dependencyCycle(let name, let path) = error as? CompoundOperationError else { return nil }
    return [name] + path
}

/// Expects that nothing is thrown, in code that cannot throw.
package func expectNoError(_ location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
    do {
        try body()
    } catch {
        Issue.record("Unexpected error: \(error)", sourceLocation: location)
    }
}

/// An error as a short text: `sync failed [0 a, 2 b]` with the indices and names of the failures, `sync cancelled (reason)
/// [0 a]`, `sync cycle [a, b]`, `b after a: first` for a failed dependency, `b before a` for an unfinished one, `b, online:
/// first` for a failed condition, `b, online, connect: first` for its prerequisite, `b, 2 attempts: first` for a budget.
package func brief(_ error: (any Error)?) -> String {
    func list(_ failures: [SuboperationError]) -> String {
        "[" + failures.map { "\($0.index) \($0.name)" }.joined(separator: ", ") + "]"
    }
    switch error {
    case CompoundOperationError.suboperationFailure(let name, let failures)?:
        return "\(name) failed \(list(failures))"
    case CompoundOperationError.cancelled(let name, let failures, let reason)?:
        return "\(name) cancelled \(reason.map { "(\(text($0))) " } ?? "")\(list(failures))"
    case CompoundOperationError.dependencyCycle(let name, let path)?:
        return "\(name) cycle [\(path.joined(separator: ", "))]"
    case DependencyError.dependencyFailed(let operation, let dependency, let error)?:
        return "\(operation) after \(dependency): \(text(error))"
    case DependencyError.dependencyUnfinished(let operation, let dependency)?:
        return "\(operation) before \(dependency)"
    case ConditionError.failed(let operation, let condition, let error)?:
        return "\(operation), \(condition): \(brief(error))"
    case ConditionError.prerequisiteFailed(let operation, let condition, let prerequisite, let error)?:
        return "\(operation), \(condition), \(prerequisite): \(brief(error))"
    case RetryError.budgetExhausted(let operation, let attempts, let error)?:
        return "\(operation), \(attempts) attempts: \(text(error))"
    default:
        return text(error)
    }
}

/// Returns every order of all or some of the events, of which none comes twice.
package func everyOrder<Event: CaseIterable & Equatable>(of events: Event.Type, after order: [Event] = []) -> [[Event]]
{
    let following = Event.allCases.filter { !order.contains($0) }
    return [order] + following.flatMap { everyOrder(of: events, after: order + [$0]) }
}

/// Writes down how far an operation has come whenever it is told to look.
package final class ProgressLog: Sendable {
    private let watched = Shared<Progress?>(nil)
    private let looks = Shared<[Double]>([])

    package init() {}

    package var fractions: [Double] { looks.value }

    /// Creates the progress of an operation, and looks at it from now on.
    package func watch(_ operation: AsyncOperation) {
        watched.value = operation.progress
    }

    package func look() {
        let fraction = watched.value?.fractionCompleted ?? -1
        looks.change { $0.append(fraction) }
    }
}

/// Runs operations on a queue of their own, until all have finished.
package func runAll(_ operations: [Operation]) async {
    await onThread { OperationQueue().addOperations(operations, waitUntilFinished: true) }
}

/// What an operation says of itself, without what depends on the level of the diagnostics: the times that pass meanwhile,
/// and that it is on no known queue.
package func withoutAges(_ operation: Operation) -> String {
    withoutAges(operation.debugDescription)
}

/// A description without what depends on the level of the diagnostics.
package func withoutAges(_ description: String) -> String {
    description.replacing(/\sfor\s[0-9][^,\n]*/, with: "").replacing(", on no known queue", with: "")
        .replacing("executing, told to end", with: "told to end")
}
