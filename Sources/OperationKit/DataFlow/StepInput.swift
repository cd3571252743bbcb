import Foundation

/// The last step of a chain, and how to read its output.
struct OutputSource<Output: Sendable>: Sendable {
    let operation: AsyncOperation
    /// Does not hold the operation.
    let output: @Sendable () -> Output?

    init<Input>(_ operation: IOOperation<Input, Output>) {
        self.operation = operation
        output = { [weak operation] in operation?.output }
    }
}

/// Hands the input to the first step. A struct, because a mere closure would be wrapped in another one each time that it
/// is handed from macro to macro.
struct InputSink<Input: Sendable>: Sendable {
    let receive: @Sendable (Input) -> Void
}

extension IOOperation {
    /// Takes over the input that the operation inside this one which gets it has already, from `with(input:)` for example.
    final func adoptInput<Middle>(of first: IOOperation<Input, Middle>) {
        if let given = first.input { input = given }
    }

    /// Hands the input to the first step, and runs the steps. If there is none, ends the operation with an error.
    final func run<Middle>(_ steps: StepList, from first: IOOperation<Input, Middle>?) {
        guard let input = requiredInput() else { return }
        first?.input = input
        steps.run(for: self)
    }

    /// Makes the operation run after others, and take its input from steps before.
    ///
    /// The dependencies are removed right before `main()`, after all bindings have been served: otherwise the last step of a
    /// chain would hold all steps before it.
    final func takeInput(after sources: [AsyncOperation], input: @escaping @Sendable () -> Input?) {
        let references = sources.map { source in
            addDependency(source)
            return WeakReference(source)
        }
        addStartHandler { [weak self] _ in
            let sources = references.compactMap(\.operation)
            let value = input()
            for source in sources { if let error = source.error { throw error } }
            guard let value else { throw CancellationError() }
            self?.input = value
        }
        addStartHandler(.last) { target in
            for source in references.compactMap(\.operation) { target.removeDependency(source) }
        }
    }
}

struct WeakReference: Sendable {
    private(set) weak var operation: AsyncOperation?

    init(_ operation: AsyncOperation) {
        self.operation = operation
    }
}
