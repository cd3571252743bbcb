import OperationKitTestSupport

/// The benchmark in a process of its own.
enum BenchmarkProcess {
    /// Runs the benchmark to its end.
    static func run(_ arguments: String...) async throws -> ProductProcess.Result {
        try await run(arguments: arguments)
    }

    /// - Parameter redirection: What a shell does with the output instead, such as `>/dev/full`.
    static func run(arguments: [String], redirection: String? = nil) async throws -> ProductProcess.Result {
        try await ProductProcess("OperationBenchmark", arguments, redirection: redirection).result()
    }
}
