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
}
