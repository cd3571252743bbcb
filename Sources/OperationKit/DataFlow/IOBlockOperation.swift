import Foundation

/// A typed operation whose work is a closure, synchronous or `async`, so that a step needs no subclass.
///
/// ```swift
/// let measure = IOBlockOperation<String, Int>(name: "measure") { $0.count }
/// let download = IOBlockOperation(name: "download") { (path: String) async throws -> Data in
///     try await Task.sleep(nanoseconds: 1_000_000)
///     return Data(path.utf8)
/// }
/// ```
///
/// The closure runs once, with the input. What it returns is the output, what it throws is the error. It is not called
/// when the operation was cancelled or given an outcome before its start, or has no input. It is released when the
/// operation finishes.
///
/// A synchronous closure runs on the thread that starts the operation, and is not disturbed by a cancellation. An
/// asynchronous one runs in a task of its own, as that of a ``TaskOperation`` does: cancelling the operation cancels
/// the task, and the operation ends when the closure does.
public final class IOBlockOperation<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable
{
    private enum Work {
        case block(@Sendable (Input) throws -> Output)
        case task(@Sendable (Input) async throws -> Output)
    }

    private var work: Work?
    private var task: Task<Void, Never>?

    /// Creates an operation that runs a closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - block: The work.
    public init(name: String? = nil, _ block: @escaping @Sendable (Input) throws -> Output) {
        work = .block(block)
        super.init()
        self.name = name
    }

    /// Creates an operation that runs an asynchronous closure.
    ///
    /// - Parameters:
    ///   - name: The name of the operation, for messages and errors.
    ///   - body: The work.
    public init(name: String? = nil, _ body: @escaping @Sendable (Input) async throws -> Output) {
        work = .task(body)
        super.init()
        self.name = name
    }

    /// Runs the closure, or starts its task.
    public override func main(input: Input) {
        switch lock.withLock({ work }) {
        case .block(let block):
            end(with: Result { try block(input) })
        case .task(let body):
            let task = startTask { try await body(input) }
            lock.withLock { if work != nil { self.task = task } }
        case nil:
            break
        }
    }

    /// Cancels the task, if there is one.
    public override func didCancel() {
        lock.withLock { task }?.cancel()
    }

    override func discardWork() {
        var discarded: Work?
        lock.withLock {
            swap(&discarded, &work)
            task = nil
        }
    }
}

extension IOOperation {
    /// Ends the operation with the result of its work.
    final func end(with result: Result<Output, any Error>) {
        switch result {
        case .success(let output): finish(with: output)
        case .failure(let error): finish(withError: error)
        }
    }

    /// Starts a task that ends the operation with what a closure returns or throws. A task that is cancelled from inside
    /// cancels the operation: soon, and before the operation ends.
    final func startTask(_ body: @escaping @Sendable () async throws -> Output) -> Task<Void, Never> {
        Task.detached(priority: TaskPriority(qualityOfService)) {
            let result: Result<Output, any Error>
            do {
                result = .success(try await withCancellationDelivered(to: { self.cancel() }, during: body))
            } catch {
                result = .failure(error)
            }
            if Task.isCancelled { self.cancel() }
            self.end(with: result)
        }
    }
}
