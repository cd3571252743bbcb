#if DEBUG
import Foundation

@testable import OperationKit

/// What came out of trying the orders in which strands can move.
struct Exploration {
    /// How many runs there were.
    var count = 0
    /// The first run with something wrong in it.
    var failure: (problems: [String], trace: String)?
}

/// What one strand does with the subject of a run.
struct Role<Subject>: Sendable {
    let name: String
    let body: @Sendable (Subject) -> Void

    init(_ name: String, _ body: @escaping @Sendable (Subject) -> Void) {
        self.name = name
        self.body = body
    }
}

/// Runs strands in one order after the other, until all are tried or something is wrong in one.
///
/// - Parameters:
///   - prepare: Makes the subject of a run.
///   - roles: What the strands do.
///   - check: What is wrong with the subject once all strands have ended.
func explore<Subject>(
    _ extent: Choices.Extent, grain: Interleaving.Grain = .regions,
    prepare: @escaping @Sendable (Interleaving) -> Subject,
    _ roles: [Role<Subject>],
    check: @escaping @Sendable (Subject, Interleaving) -> [String]
) async -> Exploration {
    await onThread {
        let lanes = Lanes()
        defer { lanes.close() }
        var choices = Choices(extent)
        var exploration = Exploration()
        repeat {
            let interleaving = Interleaving(choices, grain: grain, lanes: lanes)
            let subject = interleaving.prepare { prepare(interleaving) }
            for role in roles { interleaving.add(role.name) { role.body(subject) } }
            var problems: [String]
            (choices, problems) = interleaving.run()
            exploration.count += 1
            if problems.isEmpty { problems = check(subject, interleaving) }
            if !problems.isEmpty {
                exploration.failure = (problems, interleaving.trace)
                break
            }
        } while choices.advance()
        return exploration
    }
}
#endif
