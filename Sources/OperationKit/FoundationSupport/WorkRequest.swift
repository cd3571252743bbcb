/// A request to the default implementation of a protocol requirement to hand over its work instead of doing it.
///
/// All forms of a run call the same requirement, so a type's own implementation is what runs. From the default
/// implementation a form needs more than a completion: a run that it can observe and cancel. So it binds a request
/// around its call. The default implementation takes that, and hands over its work, which the form starts. A type's own
/// implementation knows of no request.
///
/// A request is for a type. A type has either the default implementation, which takes the request before anything else is
/// called, or one of its own, which may call the requirements of other types, where the request does not count.
final class WorkRequest<Work: Sendable>: Sendable {
    private enum State {
        case open, taken
        case answered(Work)
        case closed
    }

    private let type: ObjectIdentifier
    private let state = Locked(State.open)

    private init(for type: Any.Type) {
        self.type = ObjectIdentifier(type)
    }

    /// Calls a requirement.
    ///
    /// - Parameters:
    ///   - subject: The value whose requirement is called.
    ///   - request: Where the default implementation finds the request.
    ///   - call: Calls the requirement.
    /// - Returns: The work of the default implementation. `nil` if the type has its own implementation, which has been
    ///   called.
    static func work(of subject: some Any, by request: TaskLocal<WorkRequest?>, calling call: () -> Void) -> Work? {
        let new = WorkRequest(for: Swift.type(of: subject as Any))
        request.withValue(new, operation: call)
        return new.close()
    }

    /// The request that the current call of a requirement answers, once. The work is to be handed over before the call
    /// returns.
    ///
    /// - Parameters:
    ///   - subject: The value whose requirement was called.
    ///   - request: Where a form of a run binds its request.
    /// - Returns: `nil` if the requirement was called without a request.
    static func taken(by subject: some Any, from request: TaskLocal<WorkRequest?>) -> WorkRequest? {
        guard let request = request.get(), request.type == ObjectIdentifier(Swift.type(of: subject as Any)) else {
            return nil
        }
        return request.state.withLock { state in
            guard case .open = state else { return nil }
            state = .taken
            return request
        }
    }

    /// Hands the work over.
    func answer(_ work: Work) {
        state.withLock { $0 = .answered(work) }
    }

    private func close() -> Work? {
        // Tasks that were created during the call keep the request, but nothing in it.
        guard case .answered(let work) = state.withLock({ exchange(&$0, with: .closed) }) else { return nil }
        return work
    }
}
