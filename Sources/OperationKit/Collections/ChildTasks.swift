/// Performs units, which are items, batches or elements, in child tasks of the current task: in their order, and as
/// many at a time as a limit allows.
///
/// This is how asynchronous sequences are read, items with an `async` method are performed, and results are collected:
/// the units are counted and their answers received in one task, so that neither needs a lock. A unit is asked for when
/// there is room for it.
///
/// - Parameters:
///   - limit: The maximum number of units in flight, at least 1.
///   - suspension: Keeps units from starting while it is suspended. `nil` if the run cannot be suspended.
///   - next: Returns the next unit, or `nil` at the end. Called in the current task.
///   - perform: Performs a unit, which is identified by its index, in a task of its own.
///   - ended: Takes the answers, in the order in which the units end. Called in the current task. If it returns
///     `false`, no further unit starts, and those in flight are cancelled.
/// - Throws: What `next` throws, after the units in flight have ended; their answers are not taken. `CancellationError` if the
///   task is cancelled before the end was reached or a unit has stopped the others.
nonisolated(nonsending) func performInChildTasks<Unit: Sendable, Answer: Sendable>(
    limit: Int, suspension: Suspension? = nil, next: () async throws -> Unit?,
    perform: @escaping @Sendable (_ index: Int, _ unit: Unit) async -> Answer,
    ended: (_ index: Int, _ answer: Answer) -> Bool
) async throws {
    // A group that throws would cancel the units in flight when the sequence fails.
    let problem = await withTaskGroup(of: ChildTaskEvent<Answer>.self) { group -> (any Error)? in
        var index = 0
        var inFlight = 0
        /// The unit that starts next, once it is known.
        var pending: Unit?
        /// Whether there may be further units, and these may start.
        var goesOn = true
        var isWaitingForResume = false
        while true {
            while goesOn, inFlight < limit, !Task.isCancelled {
                if pending == nil {
                    do { pending = try await next() } catch { return error }
                    if Task.isCancelled { break }
                }
                guard let unit = pending else {
                    goesOn = false
                    break
                }
                if suspension?.isSuspended == true { break }
                pending = nil
                group.addTask { [index] in .ended(index, await perform(index, unit)) }
                index += 1
                inFlight += 1
            }
            let isCancelled = goesOn && Task.isCancelled
            if inFlight == 0, isCancelled { return CancellationError() }
            if inFlight == 0, !goesOn {
                group.cancelAll()
                return nil
            }
            if let suspension, goesOn, !isWaitingForResume, inFlight < limit {
                isWaitingForResume = true
                group.addTask {
                    await suspension.ended()
                    return .resumed
                }
            }
            switch await group.next() {
            case .ended(let index, let answer)?:
                inFlight -= 1
                if !ended(index, answer), goesOn {
                    goesOn = false
                    group.cancelAll()
                }
            case .resumed?:
                isWaitingForResume = false
            case nil:
                return nil
            }
        }
    }
    if let problem { throw problem }
}

/// What the task that starts the others waits for.
private enum ChildTaskEvent<Answer: Sendable>: Sendable {
    case ended(Int, Answer)
    case resumed
}
