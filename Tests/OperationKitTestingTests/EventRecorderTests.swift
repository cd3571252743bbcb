import Foundation
import OperationKitTestSupport

@testable import OperationKitTesting

@Suite("Event recorders", .timeLimit(.minutes(10)))
struct EventRecorderTests {
    @Test("A recorder writes down events as values")
    func recorder() async {
        let recorder = EventRecorder()
        let compound = recorder.observe(CompoundOperation(name: "job"))
        try? compound.addOperation(TaskOperation(name: "part") { 1 })
        compound.start()
        await recorder.end(of: "job")
        #expect(recorder.events(of: "part") == ["added to job", "started", "running", "finished"])
        #expect(recorder.names == ["job", "part"])
    }

    @Test("A recorder keeps nothing of a task that was cancelled while it waited for an event")
    func cancelledWaiter() async {
        let recorder = EventRecorder()
        let waits = ["load", "save"].map { name in Task { await recorder.end(of: name) } }
        await eventually("the tasks do not wait") { recorder.waiterCount == 2 }
        waits[0].cancel()
        _ = await waits[0].value
        #expect(recorder.waiterCount == 1)
        recorder.observe(TaskOperation(name: "save") { 1 }).start()
        #expect(await waits[1].value.last == "save: finished")
        #expect(recorder.waiterCount == 0)
    }

    @Test("An event has occurred once the action has returned, also for a task that asks late")
    func lateWaiter() async {
        let (isActing, mayReturn) = (Gate(), Gate())
        let recorder = EventRecorder { _, event in
            guard case .running = event.kind else { return }
            isActing.open()
            mayReturn.pass()
        }
        let operation = recorder.observe(AsyncOperation())
        Thread { operation.start() }.start()
        await isActing.opened()
        let wait = Task { await recorder.occurrence(of: "AsyncOperation: running") }
        await eventually("the task does not wait") { recorder.waiterCount == 1 }
        mayReturn.open()
        await wait.value
    }

    @Test("A report of a test that hangs names the event that it waits for, and no other")
    func awaitedEvent() async throws {
        let recorder = EventRecorder()
        recorder.observe(TaskOperation(name: "this load") { 1 }).start()
        await recorder.end(of: "this load")
        let wait = Task { await recorder.occurrence(of: "this load: works") }
        await eventually("the task does not wait") { recorder.waiterCount == 1 }
        for isAwaited in [true, false] {
            let error = await #expect(throws: HangError.self) {
                try await withHangReport(after: .milliseconds(1)) { await Gate().opened() }
            }
            let lines = try #require(error?.tree.split(separator: "\n")).filter { $0.contains("this load") }
            #expect(lines == (isAwaited ? ["  a test waits for the event “this load: works”"] : []))
            wait.cancel()
            await wait.value
        }
    }
}
