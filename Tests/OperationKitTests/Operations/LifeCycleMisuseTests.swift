import OperationKitTestSupport

@testable import OperationKit

@Suite("Misuse: operations", .hangGuard) struct LifeCycleMisuseTests {
    @Test("Started by hand on a queue, it runs once", arguments: [false, true]) func onQueue(endsInMain: Bool) async {
        // One for each: the queue does not count what others have started, so the next one may begin before its end.
        let (log, nextLog, tracker) = (EventLog(), EventLog(), LeakTracker())
        let operation = ScriptedOperation.logged(log) { if endsInMain { $0.finish() } }
        await onThread {
            let queue = tracker.track(OperationQueue.serial(name: "serial"))
            queue.isSuspended = true
            queue.addOperation(operation)
            queue.addOperation(ScriptedOperation.logged(nextLog))
            operation.start()
            queue.isSuspended = false
            operation.finish()
            queue.waitUntilAllOperationsAreFinished()
        }
        #expect(log.events == ["main", "asyncCompletionBlock success"] && nextLog.events == log.events)
        // On Linux the queue goes on referring to what others have started, unretained.
        await tracker.expectAllReleased()
        withExtendedLifetime(operation) {}
    }

    @Test("Whatever units a child sets, it counts for no less than nothing, and no more than its share, in a compound")
    func impossibleUnits() async throws {
        let (leaf, other) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        let compound = CompoundOperation(operations: [leaf, other])
        let progress = compound.progress
        await compound.start(until: leaf, other)
        (leaf.progress.totalUnitCount, other.progress.totalUnitCount) = (4, 2)
        leaf.progress.completedUnitCount = -3
        #expect(progress.fractionCompleted == 0)
        other.progress.completedUnitCount = 1
        #expect(progress.fractionCompleted == 0.25)
        for units in [100, -3] as [Int64] {
            leaf.progress.completedUnitCount = units
            #expect(progress.fractionCompleted == 0.75)
        }
        other.finish()
        #expect(progress.fractionCompleted == 0.75)
        leaf.finish()
        try await compound.finished()
        #expect(progress.fractionCompleted == 1 && leaf.progress.fractionCompleted == 1)
    }
}

#if DEBUG && (os(macOS) || os(Linux))
/// A subclass that calls `super.main()` and finishes later is found. What is reported of a class belongs to the process, so
/// each of these has one of its own.
@Suite("super.main() by mistake", .hangGuard) struct SuperMainTests {
    final class Upload: AsyncOperation, @unchecked Sendable { override func main() { super.main() } }

    final class Resize: IOOperation<Int, Void>, @unchecked Sendable {
        override func main(input: Int) { super.main(input: input) }
    }

    private static func reports() -> Shared<[String]> {
        misuseReports { report in
            guard case .finishedAfterSuperMain(let type) = report else { return nil }
            return "\(type): \(report)"
        }
    }

    @Test("A `finish` after `super.main()` is reported, once for each class, and no other second one")
    func finishAfterSuperMain() async {
        await #expect(processExitsWith: .success) {
            let (reports, outside) = (SuperMainTests.reports(), Upload())
            outside.finish()
            for operation in [AsyncOperation(), ScriptedOperation { $0.finish() }, outside] {
                operation.start()
                precondition(operation.isFinished && !operation.finish())
            }
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.isEmpty, "\(reports.value)")
            for _ in 0..<3 {
                let upload = Upload()
                upload.start()
                precondition(upload.isFinished)
                MisuseReporter.shared.waitForReports()
                await onThread { precondition(!upload.finish()) }
            }
            let resize = Resize().with(input: 1)
            // When `main()` has returned, and not only when the operation has finished.
            await onThread { resize.start() }
            precondition(!resize.finish(withError: TestError.first))
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.count == 2, "\(reports.value)")
            for (report, texts) in zip(reports.value, [("Upload", "super.main()"), ("Resize", "super.main(input:)")]) {
                precondition(report.hasPrefix("\(texts.0): OperationKit: ") && report.contains(texts.1), report)
            }
        }
    }

    @Test("A lost report ends no program", arguments: [false, true]) func unwritableReport(byPipe: Bool) async {
        await #expect(processExitsWith: .success) { [byPipe] in
            makeStandardErrorUnwritable(byPipe: byPipe)
            for _ in 0..<2 { MisuseReporter.shared.report(.latePolicy(operation: "upload", policy: "a timeout")) }
            MisuseReporter.shared.waitForReports()
            writeToStandardError("on this thread")
            var pending = sigset_t()
            unsafe sigpending(&pending)
            precondition(unsafe sigismember(&pending, SIGPIPE) == 0)
            // The testing library writes there at the end.
            signal(SIGPIPE, SIG_IGN)
        }
    }
}
#endif
