import OperationKitTestSupport

/// The benchmark in a process of its own.
enum BenchmarkProcess {
    /// Runs the benchmark to its end.
    static func run(_ arguments: String...) async throws -> ProductProcess.Result {
        try await run(arguments: arguments)
    }

    /// Runs the benchmark to its end. With a redirection, such as `>/dev/full`, a shell sends the output there instead.
    static func run(
        arguments: [String], environment: [String: String] = [:], redirection: String? = nil
    ) async throws -> ProductProcess.Result {
        try await ProductProcess(
            "OperationBenchmark", arguments, environment: environment, redirection: redirection
        ).result()
    }
}
