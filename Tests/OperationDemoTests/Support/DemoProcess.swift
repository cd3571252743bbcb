import OperationKitTestSupport

/// The demo in a process of its own.
enum DemoProcess {
    /// Runs the demo to its end.
    static func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> ProductProcess.Result {
        try await start(arguments, environment: environment).result()
    }

    static func start(_ arguments: [String], environment: [String: String] = [:]) throws -> ProductProcess {
        try ProductProcess("OperationDemo", arguments, environment: environment)
    }
}
