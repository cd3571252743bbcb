import OperationKitTestSupport

@testable import OperationKit

@Suite("Executor of the library", .hangGuard)
struct LibraryExecutorTests {
    @TaskLocal static var tag = "none"

    @Test("Tasks of the library, and so workflows, go on while tasks of users block the pool") func blockedPool() async
    {
        let workflow = WorkflowOperation { flow in
            for number in 0..<10 { try await flow.run(Step.increment("step").with(input: number)) }
            try await flow.sleep(for: .milliseconds(1))
        }
        await onThread {
            let (release, done) = (Gate(), Gate())
            for _ in 0..<2 * ProcessInfo.processInfo.activeProcessorCount { Task.detached { block(until: release) } }
            workflow.start()
            startLibraryTask {
                await Task.yield()
                done.open()
            }
            done.pass()
            workflow.waitUntilFinished()
            release.open()
        }
        #expect(workflow.error == nil)
    }

    #if os(Linux) || os(macOS)
    @Test("Tasks of the library go on while closures of users block all of their places") func blockedPlaces() async {
        await #expect(processExitsWith: .success) {
            let began = Shared(0)
            @Sendable func block(_ count: Int, until release: Gate) -> [Task<Void, Never>] {
                (0..<count).map { _ in
                    startLibraryTask {
                        try? await runUserClosure {
                            _ = began.increment()
                            release.pass()
                        }
                    }
                }
            }
            let (first, second) = (Gate(), Gate())
            let blocked = block(100, until: first)
            await eventually("the closures do not begin") { began.value == 64 }
            // One that waits for its turn ends when it is cancelled, and the closure does not run.
            let waiting = (0..<64).map { _ in
                startLibraryTask {
                    await #expect(throws: CancellationError.self) { try await runUserClosure { Issue.record("ran") } }
                }
            }
            for task in waiting { task.cancel() }
            for task in waiting { _ = await task.value }
            first.open()
            for task in blocked { await task.value }
            #expect(began.value == 100)
            let others = block(64, until: second)
            await eventually("a place is lost") { began.value == 164 }
            second.open()
            for task in others { await task.value }
        }
    }

    @Test("Bodies of composites go on while closures block all places of closures") func blockedBodies() async {
        await #expect(processExitsWith: .success) {
            let (release, began) = (Gate(), Shared(0))
            let retries = (0..<200).map { _ in
                RetryOperation<Void, Void> { _ in
                    _ = began.increment()
                    release.pass()
                    return AsyncOperation()
                }
            }
            for retry in retries { retry.start() }
            await eventually("the closures do not begin") { began.value >= 64 }
            let workflow = WorkflowOperation { flow in try await flow.run(TaskOperation { 1 }) }
            #expect(try await OperationQueue().run(workflow) == 1)
            #expect(began.value == 64)
            release.open()
            for retry in retries { try await retry.finished() }
        }
    }
    #endif

    @Test("Closures of users run on threads of the library") func threadsOfClosures() async throws {
        #expect(try await runUserClosure { LibraryExecutor.isCurrent })
        #expect(!LibraryExecutor.isCurrent)
        let inTask = startLibraryTask { try? await runUserTask { !LibraryExecutor.isCurrent && !Task.isCancelled } }
        #expect(await inTask.value == true)
        await #expect(throws: TestError.first) { try await runUserClosure { throw TestError.first } }
    }

    @Test("Tasks of the library inherit nothing") func inheritance() async {
        let tag = await Self.$tag.withValue("caller") { await startLibraryTask { Self.tag }.value }
        #expect(tag == "none")
    }

    @Test("Jobs run without a delay for each although one blocks the only prompt thread") func joinedThread() async {
        let (threads, blocking, done) = (DedicatedThreads(promptCount: 1, limit: 8), HeldWork(), Gate())
        func addJobs() async {
            let ended = Gate()
            for _ in 0..<20_000 { threads.perform {} }
            threads.perform { ended.open() }
            await ended.opened()
        }
        threads.perform {
            blocking()
            done.open()
        }
        let start = ContinuousClock.now
        await addJobs()
        // A delay for each would be 40 seconds.
        #expect(start.duration(to: .now) < .seconds(30))
        blocking.mayEnd.open()
        await done.opened()
        await addJobs()
    }

    @Test("A blocked thread is joined by none beyond the limit, and jobs begin in their order") func order() async {
        let limited = DedicatedThreads(promptCount: 1, limit: 1)
        let others = DedicatedThreads(promptCount: 1, limit: 8)
        let (log, joined, blocking) = (EventLog(), Shared(0), HeldWork())
        limited.perform { blocking() }
        await blocking.begun.opened()
        for index in 0..<6 { limited.perform { log.add("\(index)") } }
        // While these join each other, another thread would have joined the one that is blocked.
        for _ in 0..<8 {
            others.perform {
                _ = joined.increment()
                blocking()
            }
        }
        await eventually("the threads do not come") { joined.value == 8 }
        #expect(log.events.isEmpty)
        blocking.mayEnd.open()
        await eventually("the jobs do not end") { log.events.count == 6 }
        #expect(log.events == (0..<6).map { "\($0)" })
    }
}
