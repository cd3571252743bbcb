import Foundation
package import OperationKit
package import Testing

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
