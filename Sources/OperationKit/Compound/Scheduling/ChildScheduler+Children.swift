import Foundation

// MARK: - Adding children: all of a batch, or none

extension ChildScheduler {
    /// Adds the children that a compound is created with. Their dependencies are read when it starts, or when another
    /// child is added.
    ///
    /// If one of them is there twice, or belongs to another composite, none is to run. All that can be added are added nevertheless.
    func addInitial(_ operations: [Operation], to composite: AsyncOperation) {
        // Foreign operations can be adopted twice, so they are remembered.
        var foreign: Set<ObjectIdentifier> = []
        func adopt(_ operation: Operation) -> Bool {
            guard operation.setParent(self, from: nil) else { return false }
            return operation is AsyncOperation || foreign.insert(ObjectIdentifier(operation)).inserted
        }
        let firstRejected = operations.firstIndex { !adopt($0) }
        let adopted = operations.prefix(firstRejected ?? .max)
        update { $0.addedInitially(adopted) }
        announce(adopted, to: composite)
        guard let firstRejected else { return }
        // They will not run, but have to end with the composite.
        let others = operations.dropFirst(firstRejected + 1).filter(adopt)
        update { $0.addedInitially(others) }
        let error = composite.alreadyAdded(operations[firstRejected])
        refuse { _ in error }
    }

    /// Adds children, at any time before the last one has ended.
    ///
    /// They are counted from ``ChildStateMachine/adding(_:)`` on, so that the composite does not end meanwhile, and start only
    /// after ``ChildStateMachine/committed(_:)``, so that a cancelled composite can cancel them first.
    ///
    /// The lock is taken three times, and once more if there are children whose dependencies have not been read.
    ///
    /// - Parameters:
    ///   - operations: The children.
    ///   - weight: The share of each in the progress.
    ///   - composite: The composite that the children are added to.
    ///   - expected: How much of the progress was left for them before: from here on their own weights count instead.
    /// - Throws: An error, if they cannot be added. Then none of them is.
    func add(
        _ operations: [Operation], weight: Int64, to composite: AsyncOperation, inPlaceOf expected: Int64 = 0
    ) throws {
        let late = try adopt(operations, into: composite)
        connectEarlier()
        var registrations = operations.map {
            ChildRegistration(ChildReference(slot: -1, operation: $0), weight: weight)
        }
        if let error = selfDependencyError(of: registrations, in: composite)
            ?? insert(&registrations, inPlaceOf: expected)?.error(for: composite)
        {
            for operation in operations { operation.setParent(nil, from: self) }
            throw error
        }
        // Not before: one that is refused goes on waiting as it did.
        for operation in late { operation.cameInsideLate() }
        announce(operations, to: composite)
        // As others do at their end.
        for operation in operations where operation.hasAnnouncedEnd { operation.detachFromDependencies() }
        for index in registrations.indices { registrations[index].updateIgnoresDependencies() }
        update { $0.committed(registrations) }
    }

    /// Tells observers of the children that were added.
    private func announce(_ operations: some Sequence<Operation>, to composite: AsyncOperation) {
        guard ObserverList.isObserving else { return }
        for case let operation as AsyncOperation in operations { operation.announceAddition(to: composite) }
    }

    /// - Returns: Why the children are not added.
    private func insert(
        _ registrations: inout [ChildRegistration], inPlaceOf expected: Int64
    ) -> ChildStateMachine.Rejection? {
        var rejection: ChildStateMachine.Rejection?
        update { machine in
            let effects = machine.adding(&registrations, inPlaceOf: expected)
            rejection = effects.others?.value.rejection
            return effects
        }
        return rejection
    }

    /// Reads the dependencies of the children that the compound was created with: a cycle may pass through them.
    private func connectEarlier() {
        let children = machine.withLock { $0.takeUnregistered() }
        if children.isEmpty { return }
        let asked = children.map { (child: $0, unfinished: $0.operation.unfinishedDependencies) }
        machine.withLock { $0.connected(asked) }
    }

    /// - Returns: Those that have started, or something inside of which has.
    private func adopt(_ operations: [Operation], into composite: AsyncOperation) throws -> [AsyncOperation] {
        var late: [AsyncOperation] = []
        for (index, operation) in operations.enumerated() {
            precondition(
                !composite.isInside(operation),
                "OperationKit: “\(operation.displayName)” cannot be added to “\(composite.displayName)”: it would contain itself"
            )
            if operation.setParent(self, from: nil, late: { late.append($0) }) { continue }
            for operation in operations[..<index] { operation.setParent(nil, from: self) }
            throw composite.alreadyAdded(operation)
        }
        return late
    }

    /// An error, if a child waits for its own composite, or for one around it, or if one of these waits for the child.
    private func selfDependencyError(
        of registrations: [ChildRegistration], in composite: AsyncOperation
    ) -> (any Error)? {
        for (place, child) in registrations.enumerated() {
            let parent =
                child.unfinished.first { composite.isInside($0) } ?? composite.waitingOperation(for: child.operation)
            guard let parent else { continue }
            let name = child.operation.displayName(at: count.total + place)
            return CompoundOperationError.dependencyCycle(
                name: composite.displayName, path: [name, parent.displayName])
        }
        return nil
    }
}

// MARK: - Starting the composite

extension ChildScheduler {
    /// Starts the children on the private queue, which gets the name and the quality of service that the composite has now, and
    /// reports to the composite when all of them have ended.
    func run() {
        let (running, _, slots, isCancelled) = machine.withLock { $0.prepared() }
        // The composite calls this, so it is there.
        guard let composite = running else { return }
        let qualityOfService = composite.qualityOfService
        if qualityOfService != .default {
            // On Linux, a queue that was used before keeps the one that it had.
            machine.withLock { $0.queue = $0.queue ?? CompositeQueue() }
            queue.childQualityOfService = qualityOfService
        }
        queue.name = composite.displayName
        var error: (any Error)?
        for first in stride(from: 0, to: slots.count, by: ChildScheduler.batch) {
            let last = min(first + ChildScheduler.batch, slots.count)
            let found = register(first..<last, of: composite, isCancelled: isCancelled)
            error = error ?? found
        }
        if let error = error ?? machine.withLock({ $0.dependencyCycle() })?.error(for: composite) {
            // No child runs, and where stock operations wait for each other, the ends of two would lock each other out.
            for operation in machine.withLock(\.operations) {
                operation.detachFromDependencies()
                // On Linux, a stock one that was cancelled before is never ready otherwise.
                if operation.isCancelled { operation.cancel() }
            }
            composite.finish(withError: error)
        }
        // What has finished meanwhile was found unfinished by some children only, which would start after the others.
        for operation in machine.withLock({ $0.externals.changes.toObserve }) where operation.isFinished {
            update { $0.externalDependencyFinished(operation) }
        }
        update { $0.started() }
    }

    /// Registers the children in some of the slots: reads their properties and dependencies.
    ///
    /// - Returns: An error, if one of them waits for the composite.
    private func register(
        _ slots: Range<Int>, of composite: AsyncOperation, isCancelled: Bool
    ) -> CompoundOperationError? {
        let children = machine.withLock { machine in slots.compactMap { machine.readiness.table.child(in: $0) } }
        let registrations = children.compactMap { child -> ChildRegistration? in
            guard child.operation.hasAnnouncedEnd, machine.withLock({ $0.isCommitted(child) }) else {
                return ChildRegistration(child, isCancelled: isCancelled)
            }
            child.operation.detachFromDependencies()
            ended(child, error: child.operation.endingError)
            return nil
        }
        update { $0.registered(registrations) }
        for child in registrations {
            guard let parent = child.unfinished.first(where: { composite.isInside($0) }) else { continue }
            let index = machine.withLock { $0.ordinal(of: child.child) }
            return .dependencyCycle(
                name: composite.displayName, path: [child.operation.displayName(at: index), parent.displayName])
        }
        return nil
    }
}

// MARK: - Starting children

extension ChildScheduler {
    /// What a worker does: it starts one ready child after the other, until none is left or others have their turn.
    func work() {
        var next = update { $0.workerStarted() }
        var count = 0
        while let child = next {
            count += 1
            next = work(on: child, step: count == ChildScheduler.batch ? .leaves : .continues)
            if next == nil, let body, body.run() { next = update { $0.workerStarted() } }
        }
    }

    /// Starts a child on this thread, if that is safe. Foundation's own `start()` traps if the operation is not ready,
    /// and a dependency that is added at this moment would make it so. A queue starts an operation without checking
    /// again.
    ///
    /// - Returns: The next child for this worker.
    private func work(on child: ChildReference, step: WorkerStep) -> ChildReference? {
        guard let operation = child.operation as? AsyncOperation else { return workOnForeign(child, step: step) }
        if operation.hasToWait, !operation.hasBeenCancelled {
            let registration = ChildRegistration(child)
            if !registration.unfinished.isEmpty { return update { $0.putBack(registration, step: step) } }
            if operation.isReadyForFoundation { return update { $0.handedToQueue(child, step: step) } }
        }
        startOnWorker(operation)
        if let outcome = operation.observeFinish(self) { return ended(child, error: outcome.error, step: step) }
        return update { $0.detached(child, step: step) }
    }

    private func workOnForeign(_ child: ChildReference, step: WorkerStep) -> ChildReference? {
        let operation = child.operation
        if operation.isFinished { return ended(child, error: operation.endingError, step: step) }
        let isExecuting = operation.isExecuting
        let isStartable = operation.isAsynchronous && (operation.isReady || operation.isCancelled)
        if !isExecuting, !isStartable { return update { $0.handedToQueue(child, step: step) } }
        observe(child)
        // It may have finished meanwhile: its `start()` copes with that.
        if !isExecuting { startForeign(operation) }
        return update { $0.detached(child, step: step) }
    }

    /// A worker starts many children, so what one of them leaves in the autorelease pool is released before the next
    /// one.
    func startOnWorker(_ operation: Operation) {
        #if canImport(ObjectiveC)
        autoreleasepool { operation.start() }
        #else
        operation.start()
        #endif
    }

    /// Hands a child to the private queue, which starts it immediately, or once it is ready.
    func enqueue(_ child: ChildReference) {
        let operation = child.operation
        if let operation = operation as? AsyncOperation {
            // Another thread may have started it.
            if let outcome = operation.observeFinish(self) { return _ = ended(child, error: outcome.error) }
        } else {
            #if !canImport(ObjectiveC)
            if operation.isAsynchronous { return enqueueStarter(of: child) }
            #endif
            // Another thread has started it, and a worker looks at it then.
            if operation.hasBeenStarted { return _ = update { $0.handedBack(child) } }
            observe(child)
        }
        let wasReady = operation.isReady
        queue.addChild(operation)
        if wasReady, operation.isReady { return }
        operation.announceReadiness()
        if operation.hasToWait { waitsOnQueue(child) }
    }

    #if !canImport(ObjectiveC)
    private func enqueueStarter(of child: ChildReference) {
        let starter = ForeignChildStarter(child, self)
        observe(child, then: starter.childEnded)
        queue.addChild(starter)
        waitsOnQueue(child)
        starter.pollReadiness()
    }
    #endif

    private func observe(_ child: ChildReference, then next: @escaping @Sendable () -> Void = {}) {
        EndDependent().observe(child.operation) {
            self.ended(child, error: child.operation.endingError)
            next()
        }
    }
}

// MARK: - Ends of children

extension ChildScheduler: FinishObserving {
    func operationFinished(_ operation: AsyncOperation, error: (any Error)?, _ list: inout Trampoline) {
        // An operation that is observed has been a child, so it has a slot.
        guard let slot = operation.slot else { return }
        ended(ChildReference(slot: slot, operation: operation), error: error, &list)
    }

    /// A child has ended.
    ///
    /// - Returns: The next child for the worker, if it is a worker that calls this.
    @discardableResult
    private func ended(_ child: ChildReference, error: (any Error)?, step: WorkerStep = .none) -> ChildReference? {
        Trampoline.run { ended(child, error: error, step: step, &$0) }
    }

    @discardableResult
    private func ended(
        _ child: ChildReference, error: (any Error)?, step: WorkerStep = .none, _ list: inout Trampoline
    ) -> ChildReference? {
        // Others do so themselves.
        if !(child.operation is AsyncOperation) { child.operation.detachFromDependencies() }
        let end = ChildEnd(child: child, failure: failure(of: child, error: error), step: step)
        let next = update(&list) { $0.childEnded(end) }
        if let body {
            if next == nil, step == .continues { body.stay(asWorker: true) }
            tellBody(ofEnd: ObjectIdentifier(child.operation))
        }
        return next
    }

    /// The failure of a child that has finished with this error, unless it cannot count as one.
    private func failure(of child: ChildReference, error: (any Error)?) -> ChildFailure? {
        guard let error, body?.awaits(ObjectIdentifier(child.operation)) != true else { return nil }
        let isCancellation = error.isCancellation
        if isCancellation, !countsCancellations { return nil }
        let blocked = child.operation.skippedError
        // A composite that ends with the error of its first failure passes on what kept that child from running.
        let reported = countsCancellations ? blocked ?? error : error
        let index = machine.withLock { $0.ordinal(of: child) }
        return ChildFailure(
            SuboperationError(name: child.operation.displayName(at: index), index: index, error: reported),
            of: child.operation, cause: child.operation.cause { $0.isPart(of: self) }, isCancellation: isCancellation)
    }
}

extension Operation {
    /// Whether the operation has finished, and its observers know. One of which they don't know yet will report its end.
    fileprivate var hasAnnouncedEnd: Bool {
        (self as? AsyncOperation)?.withState { $0.isAnnounced } ?? isFinished
    }

    /// Whether the operation cannot be started yet. One that another thread has started does not have to.
    var hasToWait: Bool {
        !isReady && !hasBeenStarted
    }
}

extension AsyncOperation {
    /// Whether the operation is ready, apart from an override of `isReady`. If it is not, although all that it depends on has finished,
    /// Foundation is about to tell it, or, on Linux, goes on counting a dependency that was removed before it had finished.
    fileprivate var isReadyForFoundation: Bool { super.isReady }
}
