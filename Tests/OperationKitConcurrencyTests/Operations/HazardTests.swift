import OperationKitTestSupport

/// What crashes, hangs or leaks with hand-written subclasses in Foundation on Linux.
@Suite("Hazards of Foundation", .hangGuard) struct HazardTests {
    @Test(
        "Operations that are finished or cancelled before their queue starts them, or meanwhile, end once, and are released",
        arguments: [false, true], [false, true])
    func endedByOthers(isSuspended: Bool, isCancelled: Bool) async {
        let (problems, tracker) = (EventLog(), LeakTracker())
        await onThread {
            for _ in 0..<20 {
                let subjects = (0..<100).map { _ in
                    tracker.track(
                        RaceSubject(main: { _ in }, didCancel: { $0.finish(withError: CancellationError()) }))
                }
                let queue = OperationQueue()
                queue.isSuspended = isSuspended
                queue.addOperations(subjects, waitUntilFinished: false)
                for subject in subjects { if isCancelled { subject.cancel() } else { subject.end(nil) } }
                queue.isSuspended = false
                queue.waitUntilAllOperationsAreFinished()
                for subject in subjects {
                    for problem in subject.problems() { problems.add(problem) }
                    if (subject.error == nil) == isCancelled { problems.add("ended with \(text(subject.error))") }
                }
            }
        }
        #expect(problems.events.isEmpty)
        await tracker.expectAllReleased()
    }

    @Test("A suspended queue may be dropped with its operations, which do not start") func droppedQueue() async {
        for _ in 0..<50 {
            let operations = (0..<10).map { _ in ScriptedOperation() }
            weak var dropped: OperationQueue?
            do {
                let queue = OperationQueue()
                queue.isSuspended = true
                for operation in operations { queue.addOperation(operation) }
                dropped = queue
            }
            for operation in operations { operation.cancel() }
            #expect(operations.allSatisfy { $0.isCancelled && !$0.isFinished })
            // Foundation's queue and its operations may hold each other until then.
            dropped?.isSuspended = false
        }
    }

    /// Decides on its readiness by an object that it holds.
    private func choosy(_ log: EventLog, _ tracker: LeakTracker) -> AsyncOperation {
        let condition = tracker.track(Shared(true), "condition")
        return AskedAsyncOperation(isReady: { $1 && condition.value }) {
            log.add("main")
            $0.finish()
        }
    }

    enum Dropped: CaseIterable { case plain, cancelled, throwing, choosy }

    @Test("An operation may be dropped unstarted before its dependency finishes", arguments: Dropped.allCases)
    func droppedBeforeDependency(_ dropped: Dropped) async {
        let tracker = LeakTracker()
        let log = EventLog()
        await onThread {
            for _ in 0..<100 {
                let dependency = ScriptedOperation.idle()
                dependency.start()
                do {
                    let operation: AsyncOperation =
                        switch dropped {
                        case .plain, .cancelled: ScriptedOperation.logged(log)
                        case .throwing: ThrowingBlockOperation { log.add("main") }
                        case .choosy: choosy(log, tracker)
                        }
                    tracker.track(operation, "dropped")
                    operation.addDependency(dependency)
                    if dropped == .cancelled { operation.cancel() }
                }
                dependency.finish()
            }
        }
        await tracker.expectAllReleased()
        #expect(log.events.isEmpty)
    }

    @Test("An operation whose class overrides `isReady` runs and is freed", arguments: [0, 1, 3])
    func overriddenReadiness(dependencies: Int) async {
        let tracker = LeakTracker()
        let log = EventLog()
        await onThread {
            for _ in 0..<200 {
                let operation = tracker.track(choosy(log, tracker), "choosy")
                for _ in 0..<dependencies {
                    let dependency = tracker.track(ScriptedOperation(), "dependency")
                    dependency.start()
                    operation.addDependency(dependency)
                }
                operation.start()
            }
        }
        await tracker.expectAllReleased()
        #expect(log.count(of: "main") == 200)
    }

    @Test("A thousand operations that wait, in their work and their blocks, for the one they depend on do not deadlock")
    func waitsInDependents() async {
        let log = EventLog()
        let begun = Gate()
        let operation = ScriptedOperation(main: { _ in begun.open() })
        let wait: @Sendable (String) -> Void = { place in
            operation.waitUntilFinished()
            log.add("\(place) \(operation.isFinished)")
        }
        let dependents = (0..<1_000).map { _ in
            let dependent = ScriptedOperation {
                wait("main")
                $0.finish()
            }
            dependent.asyncCompletionBlock = { _ in wait("asyncCompletionBlock") }
            dependent.completionBlock = { wait("completionBlock") }
            dependent.addDependency(operation)
            return dependent
        }
        await onThread {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 4
            queue.addOperations([operation] + dependents, waitUntilFinished: false)
            begun.pass()
            operation.finish()
            queue.waitUntilAllOperationsAreFinished()
        }
        await eventually("\(log.count(of: "completionBlock true"))") { log.count(of: "completionBlock true") == 1_000 }
        #expect(log.count(of: "main true") == 1_000 && log.count(of: "asyncCompletionBlock true") == 1_000)
    }
}
