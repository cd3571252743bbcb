/// Asks the default `performOperation(on:completion:)` to hand its work over instead of doing it.
///
/// All forms of a run call that requirement, so a type's own implementation is what runs. From the default implementation
/// a form needs more than a completion: work that it can observe and cancel. A type's own implementation knows of no
/// request.
final class RunRequest: Sendable {
    typealias Answer = @Sendable (Result<CollectionWork, CoordinationError>) -> Void

    @TaskLocal private static var current: RunRequest?

    private let object: ObjectIdentifier
    private let answer: Locked<Answer?>

    private init(_ object: AnyObject, _ answer: @escaping Answer) {
        self.object = ObjectIdentifier(object)
        self.answer = Locked(answer)
    }

    /// Calls the requirement.
    ///
    /// - Parameters:
    ///   - object: The object that is called.
    ///   - answer: Called by the default implementation, before it returns.
    ///   - body: Calls the requirement.
    /// - Returns: Whether the object has the default implementation.
    static func call(of object: AnyObject, answer: @escaping Answer, _ body: () -> Void) -> Bool {
        let request = RunRequest(object, answer)
        $current.withValue(request, operation: body)
        // Tasks that were created during the call keep the request, but nothing in it.
        return request.answer.withLock { $0.take() } == nil
    }

    /// The request that the current call answers.
    static func taken(by object: AnyObject) -> Answer? {
        guard let current, current.object == ObjectIdentifier(object) else { return nil }
        return current.answer.withLock { $0.take() }
    }
}
