/// Calls a synchronous closure of the user in a task of the library. It may block.
///
/// A certain number of closures run at the same time, and further ones wait for their turn in the order of their arrival. So however
/// many block, tasks of the library, deadlines, cancellations and releases go on. A closure that has its place immediately runs
/// on the current thread.
///
/// - Parameters:
///   - isOnLibraryThread: Whether the current thread is one of the ``LibraryExecutor``, by another executor; `nil` to ask.
///   - body: The closure.
/// - Returns: What the closure returns.
/// - Throws: What the closure throws; `CancellationError` if the task is cancelled while the closure waits for its turn, and does
///   not run.
func runUserClosure<Value: Sendable>(
    isOnLibraryThread: Bool? = nil, _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await ClosurePlaces.enter()
    defer { ClosurePlaces.leave() }
    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
        return try await withCheckedThrowingContinuation { continuation in
            ClosurePlaces.threads.perform { continuation.resume(with: Result { try body() }) }
        }
    }
    if isOnLibraryThread ?? LibraryExecutor.isCurrent { return try body() }
    return try await withTaskExecutorPreference(LibraryExecutor.shared) { try body() }
}

/// The places of the synchronous closures of users that run at the same time.
private struct ClosurePlaces {
    static let shared = Locked(ClosurePlaces())
    /// Where the closures run without a task executor.
    static let threads = DedicatedThreads(promptCount: closureLimit, limit: closureLimit)

    private var free = closureLimit
    /// Each operation ends when it is the turn of a closure.
    private var line = IndexedHeap<Int, AsyncOperation>()

    /// Takes a place.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while it waits for the place.
    static func enter() async throws {
        if shared.withLock({ $0.takeFreePlace() }) { return }
        let turn = AsyncOperation()
        turn.hideFromObservers()
        let id = shared.withLock { $0.takeFreePlace() ? nil : $0.line.insert(turn, key: 0) }
        guard let id else { return }
        do {
            try await turn.waitForFinish()
        } catch {
            // It may have got its place meanwhile.
            if shared.withLock({ $0.line.remove(id) }) == nil { leave() }
            throw error
        }
    }

    /// Hands the place to the closure that has waited longest.
    static func leave() {
        let next = shared.withLock { places in
            let next = places.line.popFirst()
            if next == nil { places.free += 1 }
            return next
        }
        next?.start()
    }

    private mutating func takeFreePlace() -> Bool {
        guard free > 0 else { return false }
        free -= 1
        return true
    }
}
