import OperationKitTestSupport

@testable import OperationKit

/// What happens to operations that are not used as they should be. The article *Misuse* lists it all.
@Suite("Misuse: operations", .hangGuard) struct LifeCycleMisuseTests {
    @Test("An operation that is started by hand does not wait for its dependencies") func beforeDependencies() async {
        let log = EventLog()
        let operation = ScriptedOperation.logged(log)
        let dependency = ScriptedOperation.idle()
        operation.addDependency(dependency)
        operation.start()
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        #expect(operation.isFinished && !dependency.isFinished)
    }

    @Test("An operation that is started by hand while it is on a queue runs once", arguments: [false, true])
    func onQueue(endsInMain: Bool) async {
        // One for each: the queue does not count what others have started, so the next one may begin before its end.
        let (log, nextLog) = (EventLog(), EventLog())
        let operation = ScriptedOperation.logged(log) { if endsInMain { $0.finish() } }
        let next = ScriptedOperation.logged(nextLog)
        let tracker = LeakTracker()
        await onThread {
            let queue = tracker.track(OperationQueue.serial(name: "serial"))
            queue.isSuspended = true
            queue.addOperation(operation)
            queue.addOperation(next)
            operation.start()
            queue.isSuspended = false
            operation.finish()
            queue.waitUntilAllOperationsAreFinished()
        }
        #expect(log.events == ["main", "asyncCompletionBlock success"])
        #expect(nextLog.events == log.events)
        // On Linux the queue goes on referring to what others have started, unretained.
        await tracker.expectAllReleased()
        withExtendedLifetime(operation) {}
    }

    @Test("A dependency that is added after the start holds nothing back") func lateDependency() async throws {
        let never = ScriptedOperation.idle()
        let operation = ScriptedOperation.idle()
        operation.start()
        operation.addDependency(never)
        operation.finish()
        try await operation.finished()
        #expect(operation.dependencies == [never])
    }

    @Test("An operation can be finished by other code before its `main()` returns, and holds its compound until then")
    func mainDoesNotReturn() async {
        let log = EventLog()
        let (begun, gate) = (Gate(), Gate())
        let child = ScriptedOperation(
            main: { _ in
                begun.open()
                gate.pass()
                log.add("main returns")
            }, didCancel: { _ in log.add("didCancel") })
        let compound = CompoundOperation(operations: [child])
        OperationQueue().addOperation(compound)
        await begun.opened()
        compound.cancel()
        #expect(child.isCancelled && !child.isFinished)
        child.finish(withError: TestError.first)
        #expect(child.isFinished && text(child.error) == "first")
        #expect(!compound.isFinished && log.events.isEmpty)
        gate.open()
        try? await compound.finished()
        #expect(log.events == ["main returns"])
    }

    @Test("Whatever units a child sets, it counts for no less than nothing, and no more than its share, in a compound")
    func impossibleUnits() async throws {
        let (leaf, other) = (ScriptedOperation.idle(), ScriptedOperation.idle())
        let compound = CompoundOperation(operations: [leaf, other])
        let progress = compound.progress
        compound.start()
        await eventually("not begun") { leaf.isAtWork && other.isAtWork }
        leaf.progress.totalUnitCount = 4
        leaf.progress.completedUnitCount = -3
        #expect(progress.fractionCompleted == 0)
        other.progress.totalUnitCount = 2
        other.progress.completedUnitCount = 1
        #expect(progress.fractionCompleted == 0.25)
        leaf.progress.completedUnitCount = 100
        #expect(progress.fractionCompleted == 0.75)
        leaf.progress.completedUnitCount = -3
        #expect(progress.fractionCompleted == 0.75)
        other.finish()
        #expect(progress.fractionCompleted == 0.75)
        leaf.finish()
        try await compound.finished()
        #expect(progress.fractionCompleted == 1 && leaf.progress.fractionCompleted == 1)
    }

    #if os(macOS) || os(Linux)
    @Test("A binding of an operation to itself traps") func boundToItself() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let operation = ScriptedOperation("narcissus")
            operation.bind(to: operation) { _, _ in }
        }
        #if DEBUG
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("“narcissus” cannot depend on itself"))
        #endif
    }

    #endif
}

#if DEBUG && (os(macOS) || os(Linux))
/// A subclass that calls `super.main()` and finishes later is found. What is reported of a class belongs to the process, so
/// each of these has one of its own.
@Suite("super.main() by mistake", .hangGuard) struct SuperMainTests {
    /// The mistake.
    final class Upload: AsyncOperation, @unchecked Sendable {
        override func main() {
            super.main()
        }
    }

    /// The same with an input.
    final class Resize: IOOperation<Int, Void>, @unchecked Sendable {
        override func main(input: Int) {
            super.main(input: input)
        }
    }

    /// Receives the reports of the process from now on.
    private static func reports() -> Shared<[String]> {
        unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "starts", 1)
        let reports = Shared<[String]>([])
        OperationDiagnostics.handler = { report in
            guard case .finishedAfterSuperMain(let type) = report else { return }
            reports.change { $0.append("\(type): \(report)") }
        }
        return reports
    }

    @Test("A `finish` after `super.main()` is reported, once for each class") func finishAfterSuperMain() async {
        await #expect(processExitsWith: .success) {
            let reports = SuperMainTests.reports()
            for _ in 0..<3 {
                let upload = Upload()
                upload.start()
                precondition(upload.isFinished)
                MisuseReporter.shared.waitForReports()
                await onThread { precondition(!upload.finish()) }
            }
            let resize = Resize()
            resize.input = 1
            // When `main()` has returned, and not only when the operation has finished.
            await onThread { resize.start() }
            precondition(!resize.finish(withError: TestError.first))
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.count == 2, "\(reports.value)")
            precondition(reports.value[0].hasPrefix("Upload: OperationKit: "), reports.value[0])
            precondition(reports.value[0].contains("super.main()"))
            precondition(reports.value[1].hasPrefix("Resize: OperationKit: "), reports.value[1])
            precondition(reports.value[1].contains("super.main(input:)"))
        }
    }

    @Test("Operations that are finished twice otherwise are not reported") func otherSecondFinishes() async {
        await #expect(processExitsWith: .success) {
            let reports = SuperMainTests.reports()
            let plain = AsyncOperation()
            let overriding = ScriptedOperation { $0.finish() }
            for operation in [plain, overriding] {
                operation.start()
                precondition(operation.isFinished)
                precondition(!operation.finish())
            }
            let outside = Upload()
            outside.finish()
            outside.start()
            outside.finish()
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.isEmpty, "\(reports.value)")
        }
    }

    @Test("The report is printed to standard error") func printed() async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let upload = Upload()
            upload.start()
            upload.finish()
            MisuseReporter.shared.waitForReports()
        }
        let printed = String(decoding: result.standardErrorContent, as: UTF8.self)
        let sentence = "no effect on an operation of the class “Upload”, because super.main had finished it before."
        #expect(printed.contains(sentence))
    }

    @Test("Nothing is reported where nothing is recorded") func off() async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "off", 1)
            let upload = Upload()
            upload.start()
            upload.finish()
            MisuseReporter.shared.waitForReports()
        }
        #expect(!String(decoding: result.standardErrorContent, as: UTF8.self).contains("Upload"))
    }
}
#endif
