package import Testing

/// Expects that nothing is thrown, in code that cannot throw.
package func expectNoError(_ location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
    do {
        try body()
    } catch {
        Issue.record("Unexpected error: \(error)", sourceLocation: location)
    }
}
