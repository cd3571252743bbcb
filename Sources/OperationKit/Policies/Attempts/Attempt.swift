/// An operation that was made for one attempt of another one, which ends with the result of an attempt.
struct Attempt<Input: Sendable, Output: Sendable>: Sendable {
    let operation: AsyncOperation
    /// Gives the operation its input, unless it has one.
    let giveInput: @Sendable (Input) -> Void
    /// Reads what the operation produced.
    private let output: @Sendable () -> Output?

    init(_ operation: IOOperation<Input, Output>) {
        self.operation = operation
        giveInput = { if operation.input == nil { operation.input = $0 } }
        output = { operation.output }
    }

    /// The result of the operation, which has finished.
    var result: Result<Output, any Error> {
        if let error = operation.error { return .failure(operation.skippedError ?? error) }
        if let output = output() { return .success(output) }
        return .failure(IOOperationError.missingOutput(operation: operation.displayName))
    }
}

extension Attempt where Input == Void, Output == Void {
    /// An operation of any class, for which success is the output.
    init(ofAnyClass operation: AsyncOperation) {
        self.operation = operation
        giveInput = { _ in }
        output = { .some(()) }
    }
}
