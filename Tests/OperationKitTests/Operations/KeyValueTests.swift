import OperationKitTestSupport

@testable import OperationKit

/// Changes of state, as far as they can be seen on Linux: code that listens to Foundation reacts, and finds the state that was announced.
@Suite("Changes are announced", .hangGuard) struct KeyValueTests {
    @Test("Foundation asks a dependent once the operation reads as finished", arguments: Start.allCases)
    func asksDependent(start: Start) async {
        let (operation, seen) = (ScriptedOperation(), EventLog())
        let dependent = AskedOperation(isReady: { _, isReady in
            seen.add("executing \(operation.isExecuting), finished \(operation.isFinished)")
            return isReady
        })
        dependent.addDependency(operation)
        await start(operation)
        #expect(seen.events.last == "executing false, finished true")
        #expect(dependent.isReady)
    }

    #if DEBUG
    /// Writes down what the operation reads as right before it announces a change. On Linux its announcements cannot be
    /// overridden.
    private final class Announcements: SchedulingProbe.Observer {
        var events: [String] = []

        func reached(_ place: SchedulingProbe.Place) {
            switch place {
            case .willChange(let operation, let key): note("will change", key, operation)
            case .didChange(let operation, let key): note("did change", key, operation)
            case .locking, .unlocked, .told, .handlerBegan, .handlerEnded: break
            }
        }

        private func note(_ announcement: String, _ key: String, _ operation: Operation) {
            events.append("\(announcement) \(key): \(operation.isExecuting) \(operation.isFinished)")
        }
    }

    @Test("`willChangeValue(forKey:)` precedes a change of state, and `didChangeValue` follows it")
    func announcements() {
        let announcements = Announcements()
        SchedulingProbe.observed(by: announcements) {
            let operation = ScriptedOperation.idle()
            operation.start()
            operation.finish()
        }
        #if canImport(ObjectiveC)
        #expect(
            announcements.events == [
                "will change isExecuting: false false", "did change isExecuting: true false",
                "will change isExecuting: true false", "will change isFinished: true false",
                "did change isExecuting: false true", "did change isFinished: false true",
            ])
        #else
        #expect(
            announcements.events == [
                "will change isExecuting: false false", "did change isExecuting: true false",
                "will change isFinished: true false", "did change isFinished: false true",
            ])
        #endif
    }
    #endif
}
