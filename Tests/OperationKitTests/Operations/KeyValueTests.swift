import OperationKitTestSupport

@testable import OperationKit

/// Changes of state, as far as they can be seen on Linux: code that listens to Foundation reacts, and finds the state that was announced.
@Suite("Changes are announced", .hangGuard) struct KeyValueTests {
    /// Writes down what its dependency reads as whenever Foundation asks for its readiness.
    private final class Probe: Operation, @unchecked Sendable {
        private let dependency: AsyncOperation
        let seen = Shared<[String]>([])

        init(of dependency: AsyncOperation) {
            self.dependency = dependency
            super.init()
            addDependency(dependency)
            seen.value = []
        }

        override var isReady: Bool {
            let text = "executing \(dependency.isExecuting), finished \(dependency.isFinished)"
            seen.change { $0.append(text) }
            return super.isReady
        }
    }

    @Test("Foundation asks a dependent once the operation reads as finished", arguments: Start.allCases)
    func asksDependent(start: Start) async {
        let operation = ScriptedOperation()
        let probe = Probe(of: operation)
        await start(operation)
        #expect(probe.seen.value.last == "executing false, finished true")
        #expect(probe.isReady)
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
