/// A value that its owner carries to other threads, although the compiler cannot check that it is safe there.
struct UncheckedSendable<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
