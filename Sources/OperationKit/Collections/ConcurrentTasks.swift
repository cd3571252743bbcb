/// Performs items, batches or elements in tasks: in their order, and as many at a time as a limit allows.
///
/// This is how asynchronous sequences are read, items with an `async` method are performed, and results are collected:
/// the items are counted and their answers received in one task, so that neither needs a lock. An item is asked for when
/// there is room for it. Where one item is performed after the other, that is done in the current task, and otherwise in a
/// child task each.
///
/// - Parameters:
///   - isolation: The actor of the caller.
///   - limit: The maximum number of items in flight, at least 1.
///   - suspension: Keeps items from starting while it is suspended. `nil` if the run cannot be suspended.
///   - next: Returns the next item, or `nil` at the end. Called in the current task, on its actor.
///   - perform: Performs an item, which is identified by its index.
///   - ended: Takes the answers, in the order in which the items end. Called in the current task. If it returns
///     `false`, no further item starts, and those in flight are cancelled.
/// - Throws: `CancellationError` if the task is cancelled before the end was reached or an item has stopped the others.
func forEachConcurrently<Item: Sendable, Answer: Sendable>(
    isolation: isolated (any Actor)? = #isolation, limit: Int, suspension: Suspension? = nil,
    next: nonisolated(nonsending) () async -> Item?,
    perform: @escaping @Sendable (_ index: Int, _ item: Item) async -> Answer,
    ended: (_ index: Int, _ answer: Answer) -> Bool
) async throws {
    if limit == 1 {
        var index = 0
        while !Task.isCancelled {
            let item = await next()
            if item != nil { await suspension?.ended() }
            if Task.isCancelled { break }
            guard let item else { return }
            guard ended(index, await perform(index, item)) else { return }
            index += 1
        }
        throw CancellationError()
    }
    // The task that waits for the end of a suspension returns `nil`.
    let wasCancelled = await withTaskGroup(of: (index: Int, answer: Answer)?.self) { group in
        // Otherwise the items, whose closures may belong to an actor, would not be read there.
        _ = isolation
        var index = 0
        var inFlight = 0
        /// The item that starts next, once it is known.
        var pending: Item?
        /// Whether there may be further items, and these may start.
        var goesOn = true
        var isWaitingForResume = false
        while true {
            while goesOn, inFlight < limit, !Task.isCancelled {
                if pending == nil {
                    pending = await next()
                    if Task.isCancelled { break }
                }
                guard let item = pending else {
                    goesOn = false
                    break
                }
                if suspension?.isSuspended == true { break }
                pending = nil
                group.addTask { [index] in (index, await perform(index, item)) }
                index += 1
                inFlight += 1
            }
            if inFlight == 0, !goesOn || Task.isCancelled {
                group.cancelAll()
                return goesOn
            }
            // Not after a cancellation, which ends its wait: the items in flight may take longer to end.
            if let suspension, goesOn, !isWaitingForResume, inFlight < limit, !Task.isCancelled {
                isWaitingForResume = true
                group.addTask {
                    await suspension.ended()
                    return nil
                }
            }
            switch await group.next() {
            case let (index, answer)??:
                inFlight -= 1
                if !ended(index, answer) {
                    goesOn = false
                    group.cancelAll()
                }
            case .some(nil):
                isWaitingForResume = false
            case nil:
                return false
            }
        }
    }
    if wasCancelled { throw CancellationError() }
}

/// Runs an asynchronous function in a task of its own, and calls the completion outside of it, where it may block.
func performInTask(_ body: @escaping @Sendable () async throws -> Void, completion: @escaping ItemCompletion) {
    Task {
        let result = await Result { try await body() }
        CollectionDriver.queue.performAsync { completion(result.error) }
    }
}

/// The tasks of the items in flight, where an `async` method performs an item or a batch.
final class InFlightTasks: Sendable {
    private let state = Locked<(tasks: [Int: Task<Void, Never>], isCancelled: Bool)>(([:], false))

    /// Runs an asynchronous function in a task of its own, which is known until it ends.
    func run(
        _ index: Int, _ body: @escaping @Sendable () async throws -> Void,
        completion: @escaping ItemCompletion
    ) {
        // The task has to be stored before it ends, so it is created with the lock held. Nothing of it runs there.
        let (task, isCancelled) = state.withLock { state in
            let task = Task {
                let result = await Result { try await body() }
                // Release the task after unlocking; its deinitializers may run arbitrary code.
                _ = self.state.withLock { $0.tasks.removeValue(forKey: index) }
                completion(result.error)
            }
            state.tasks[index] = task
            return (task, state.isCancelled)
        }
        if isCancelled { task.cancel() }
    }

    /// Runs an asynchronous function in a task of its own, and suspends until it has ended. Cancelling the current task
    /// cancels all tasks.
    ///
    /// - Throws: What the function throws.
    func run(_ index: Int, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let error = await withCancellationDelivered(to: cancel) {
            await withCheckedContinuation { continuation in
                run(index, body) { continuation.resume(returning: $0) }
            }
        }
        if let error { throw error }
    }

    /// Cancels all tasks, later ones too. Each of many tasks may call it; the first call does it.
    func cancel() {
        let tasks = state.withLock { exchange(&$0.isCancelled, with: true) ? [] : Array($0.tasks.values) }
        for task in tasks { task.cancel() }
    }
}

/// Whether work is suspended, and what the tasks wait for that wait for it to be resumed.
final class Suspension: Sendable {
    /// Ends when the work is resumed; `nil` while it is not suspended.
    private let resumption = Locked<AsyncOperation?>(nil)

    /// May be changed and read on any thread, at any time.
    var isSuspended: Bool {
        get { resumption.withLock { $0 != nil } }
        set {
            let new = newValue ? AsyncOperation() : nil
            new?.hideFromObservers()
            let ended = resumption.withLock { current in
                guard let new else { return current.take() }
                current = current ?? new
                return nil
            }
            ended?.start()
        }
    }

    /// Suspends the current task until the work is not suspended, or the task is cancelled.
    nonisolated(nonsending) func ended() async {
        while !Task.isCancelled, let resumption = resumption.withLock(\.self) { try? await resumption.waitForFinish() }
    }
}
