import Foundation

// A composite whose work is an `async` body, which runs operations as children: retries, repetitions, workflows and others.
// The body runs in one task, from `main()` on, and counts as an unfinished child. So the composite ends when the body and all
// children have.
extension IOOperation {
    /// Makes the operation a composite with a body, in its initializer.
    ///
    /// - Parameters:
    ///   - children: The scheduler of the children, which has a ``CompositeBody``.
    ///   - describe: Called for descriptions, on any thread.
    ///   - body: Called once with the input, and released when it returns. The operation is kept alive meanwhile, so the
    ///     body refers to it unowned. If it throws, the children are cancelled.
    final func becomeComposite(
        of children: ChildScheduler, describe: @escaping @Sendable (_ snapshot: inout ChildSnapshot) -> Void = { _ in },
        body: @escaping @Sendable (_ input: Input) async throws -> Output
    ) {
        becomeComposite(of: children)
        // The body until it is called, and then its result.
        let work = Locked<(body: (@Sendable (Input) async throws -> Output)?, result: Result<Output, any Error>?)>(
            (body, nil))
        children.attach(
            to: self,
            CompositeHandlers(
                start: { [unowned self, unowned children] in
                    guard let input = requiredInput() else { return }
                    children.prepareQueue(for: self)
                    runBody(in: children, start: { children.run() }) {
                        let result = await Result {
                            guard let body = work.withLock({ $0.body.take() }) else { throw CancellationError() }
                            return try await body(input)
                        }
                        work.withLock { $0.result = result }
                        return result.error == nil
                    }
                },
                finished: { [unowned self, unowned children] failures, list in
                    let (_, result) = work.withLock { ($0.body.take(), $0.result.take()) }
                    bodyAndChildrenFinished(result, failures, in: children, &list)
                },
                describe: describe))
    }

    /// Starts a body.
    ///
    /// - Parameters:
    ///   - children: The scheduler of the children.
    ///   - start: Starts the children that are there already.
    ///   - body: The body. Returns whether it did not throw.
    final func runBody(
        in children: ChildScheduler, start: () -> Void, _ body: @escaping @Sendable () async -> Bool
    ) {
        children.machine.withLock { $0.hasRunningBody = true }
        start()
        // A thread that belongs to no operation queue may be the main one.
        if let queue = OperationQueue.current, queue !== OperationQueue.main { children.body?.stay(asWorker: false) }
        children.body?.start(priority: qualityOfService.equivalents.priority) {
            let isSuccess = await body()
            if Task.isCancelled || children.cancelsNewChildren { self.cancel() }
            if !isSuccess { Trampoline.run { children.cancelAll(&$0) } }
            children.bodyEnded()
        }
        _ = children.body?.run()
    }

    private func bodyAndChildrenFinished(
        _ result: Result<Output, any Error>?, _ failures: ChildFailures, in children: ChildScheduler,
        _ list: inout Trampoline
    ) {
        let name = displayName
        let skippedError = children.body?.skippedError
        children.body?.skippedError = nil
        let result = (result ?? .failure(CancellationError())).mapError { error in
            replacedByReason(skippedError?.passingOnCause(in: error) ?? error)
        }
        childrenFinished(
            withResult: { isCancelled, reason in
                guard case .success(let output) = result, !failures.errors.isEmpty else { return result }
                return CompoundOperationError.outcome(name: name, failures, isCancelled: isCancelled, reason: reason)
                    .map { output }
            }, &list)
    }
}

extension Result where Success: Sendable, Failure == any Error {
    /// Stores what an asynchronous body returns or throws.
    init(_ body: @Sendable () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}

// What a body does.
extension ChildScheduler {
    /// Whether the body is to run no more children, because the composite was cancelled.
    var isStopped: Bool { cancelsNewChildren || body?.isCancelled == true }

    /// Returns when a child that was there before the body has ended, in whatever way, and was counted, which is after its end.
    func waitForEnd(of child: AsyncOperation) async {
        let id = ObjectIdentifier(child)
        await withCheckedContinuation { continuation in
            guard let body, body.beganWait(for: id, continuation) else { return continuation.resume() }
            if machine.withLock({ $0.schedule.table.slot(of: child) }) == nil { body.childEnded(id) }
        }
    }

    /// Runs an operation as a child, and returns when it has ended, in whatever way, and has given its place back. Its failure is
    /// the caller's to handle.
    ///
    /// - Parameters:
    ///   - operation: An operation of any class.
    ///   - weight: Its share in the progress, which was counted before.
    /// - Throws: An error, if it cannot be added.
    func runChild(_ operation: Operation, weight: Int64 = 0) async throws {
        guard let body, let composite = self.operation else { throw CancellationError() }
        if body.hasEnded {
            throw CompoundAdditionError.compoundFinished(
                operation: operation.displayName, compound: composite.displayName)
        }
        if let operation = operation as? AsyncOperation { try composite.requireOutside(operation) }
        let id = ObjectIdentifier(operation)
        var failure: (any Error)?
        await withCheckedContinuation { continuation in
            guard body.beganWait(for: id, continuation) else {
                failure = CompoundAdditionError.alreadyAdded(
                    operation: operation.displayName, compound: composite.displayName)
                return continuation.resume()
            }
            do {
                try add([operation], weights: [weight], to: composite, inPlaceOf: weight)
            } catch {
                failure = error
                body.childEnded(id)
            }
        }
        if let failure { throw failure }
        if let skippedError = (operation as? AsyncOperation)?.skippedError { body.skippedError = skippedError }
    }
}
