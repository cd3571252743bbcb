/// Asks the default implementation of `performOperation(on:completion:)`, or of a coordinator's
/// `performOperations(_:completion:)`, to hand its work over instead of doing it.
///
/// All forms of a run call the requirement, so a type's own implementation is what runs. From the default implementation
/// a form needs more than a completion: work that it can observe and cancel. A type's own implementation knows of no
/// request.
final class RunRequest: Sendable {
    @TaskLocal private static var current: RunRequest?

    private let receiver: ObjectIdentifier
    private let state = Locked<(isTaken: Bool, work: (any Sendable)?)>((false, nil))

    private init(_ receiver: ObjectIdentifier) {
        self.receiver = receiver
    }

    /// Calls a requirement.
    ///
    /// - Parameters:
    ///   - receiver: What is called: an object or a type.
    ///   - body: Calls the requirement.
    /// - Returns: The work that the default implementation has handed over; `nil` if there is another implementation.
    static func work<Work: Sendable>(of receiver: ObjectIdentifier, _ body: () -> Void) -> Work? {
        let request = RunRequest(receiver)
        $current.withValue(request, operation: body)
        // Tasks that were created during the call keep the request, but nothing in it.
        return request.state.withLock { state in
            state.isTaken = true
            return state.work.take()
        } as? Work
    }

    /// The request that the current call answers, by a call of ``answer(with:)`` before it returns.
    static func taken(by receiver: ObjectIdentifier) -> RunRequest? {
        guard let current, current.receiver == receiver else { return nil }
        return current.state.withLock { exchange(&$0.isTaken, with: true) } ? nil : current
    }

    /// Hands the work over.
    func answer(with work: some Sendable) {
        state.withLock { $0.work = work }
    }
}
