/// A child of a composite that decides what follows, and may add other children. As long as there is one, the composite does
/// not end.
final class TurnOperation: AsyncOperation, @unchecked Sendable {
    private let body: @Sendable () -> Void
    private let composite: String

    /// - Parameters:
    ///   - composite: What messages call the composite.
    ///   - body: Called unless the turn was cancelled before, on a thread of the private queue of the composite.
    init(of composite: String, _ body: @escaping @Sendable () -> Void) {
        self.composite = composite
        self.body = body
        super.init()
        hideFromObservers()
    }

    override var ownTitle: String? { "turn of \(composite)" }

    override func main() {
        body()
        finish()
    }
}
