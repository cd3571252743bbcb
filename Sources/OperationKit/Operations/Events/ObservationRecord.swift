/// What an operation knows of its observers. An object, because few operations have observers. The operation's lock guards it.
final class ObservationRecord: @unchecked Sendable {
    /// That of all operations that only the library knows.
    static let hidden = ObservationRecord(isHidden: true)

    /// Whether only the library knows the operation, so that it has no events.
    let isHidden: Bool
    // The lock of the operation guarantees exclusive access; skip the run-time checks.
    @exclusivity(unchecked) private var state: ObservationState

    init(isHidden: Bool = false) {
        self.isHidden = isHidden
        unsafe state = ObservationState(id: ObserverRegistry.makeIdentifier())
    }

    /// The operation is gone, perhaps without having ended.
    deinit {
        if unsafe state.isComposite { _ = unsafe state.forgetObservers() }
    }

    /// Reads and changes the state. Callers hold the operation's lock.
    @inline(__always)
    func change<Value>(_ body: (inout ObservationState) -> Value) -> Value {
        unsafe body(&state)
    }

    /// What the thread delivers that has taken on the current event. Other threads don't change that.
    var current: ObservationState.Pending? { unsafe state.current }
}
