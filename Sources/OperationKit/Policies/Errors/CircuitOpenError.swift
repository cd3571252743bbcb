public import Foundation

/// An operation did not run, because a circuit breaker that it requires lets nothing through at the moment. Code 1.
public struct CircuitOpenError: Error, Equatable, RetryAfterProviding {
    /// The name of the operation, or else its type.
    public let operation: String
    /// The name of the circuit breaker.
    public let circuit: String
    /// How long until it lets something through again; `nil` if that depends on operations that are on trial now.
    public let retryAfter: Duration?

    /// Creates the error.
    ///
    /// - Parameters:
    ///   - operation: The name of the operation.
    ///   - circuit: The name of the circuit breaker.
    ///   - retryAfter: How long until it lets something through again, if that is known.
    public init(operation: String, circuit: String, retryAfter: Duration?) {
        self.operation = operation
        self.circuit = circuit
        self.retryAfter = retryAfter
    }
}

extension CircuitOpenError: LocalizedError, CustomNSError, ReportedError {
    var code: Int { 1 }

    func text(depth: Int) -> String {
        "The operation “\(operation)” did not run, because the circuit breaker “\(circuit)” "
            + (retryAfter.map { "is open, for another \(ageText($0))." }
                ?? "lets no other operation through until those on trial have ended.")
    }
}
