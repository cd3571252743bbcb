/// A state machine that decides which thread writes a value to a target that may not be written with a lock held.
///
/// One thread at a time writes. A value that changes meanwhile is left to that thread. So the target never goes back to an
/// older value, and has the latest one in the end; values in between may be skipped.
///
/// It is part of the state of its owner, whose lock guards it:
///
/// ```
/// var next = state.withLock { $0.writer.changed(to: value) }
/// while let value = next {
///     target.value = value
///     next = state.withLock { $0.writer.wrote(value) }
/// }
/// ```
///
/// A thread whose value is left to another one goes on before the target has it. What must not happen before that is left to
/// that thread, too: see ``isWriting``.
struct CoalescingWriter<Value: Equatable> {
    /// The value that the target has, or is going to have.
    private(set) var latest: Value
    /// Whether a thread is about to write.
    private(set) var isWriting = false

    /// - Parameter value: What the target has.
    init(_ value: Value) {
        latest = value
    }

    /// The target is to have another value.
    ///
    /// - Returns: The value, if the caller has to write it.
    mutating func changed(to value: Value) -> Value? {
        if value == latest { return nil }
        latest = value
        if isWriting { return nil }
        isWriting = true
        return value
    }

    /// The caller has written a value.
    ///
    /// - Returns: The value that it has to write next.
    mutating func wrote(_ value: Value) -> Value? {
        isWriting = value != latest
        return isWriting ? latest : nil
    }
}

extension CoalescingWriter: Sendable where Value: Sendable {}
