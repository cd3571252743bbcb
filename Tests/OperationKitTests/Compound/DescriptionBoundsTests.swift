import OperationKitTestSupport

@testable import OperationKit

@Suite("Descriptions: bounds", .hangGuard) struct DescriptionBoundsTests {
    @Test("A large compound names the children that execute and some others, and counts the rest") func large() async {
        // The only child that begins is the last one of all.
        let last = ScriptedOperation.idle("last")
        last.queuePriority = .veryHigh
        let count = TestExtent.choose(4_000, long: 100_000)
        let children = (0..<count).map { _ in ScriptedOperation() }
        let compound = CompoundOperation(name: "Many", operations: children + [last], maxConcurrentOperationCount: 1)
        await compound.start(until: last)
        let lines = withoutAges(compound).split(separator: "\n")
        #expect(lines.count == 102)
        #expect(lines[0] == "“Many”: executing, 0 of \(count + 1) children have ended")
        #expect(lines[1] == "  “last”: executing")
        #expect(lines[2] == "  “ScriptedOperation 0”: ready, but the limit of 1 is reached")
        #expect(lines[100] == "  “ScriptedOperation 98”: ready, but the limit of 1 is reached")
        #expect(lines[101] == "  … and \(count - 99) more")
        last.finish()
        try? await compound.finished()
    }

    @Test("The description of a tree of compounds has a bounded number of lines") func tree() {
        let compounds = (0..<20).map { index in
            CompoundOperation(name: "\(index)", operations: (0..<50).map { _ in ScriptedOperation() })
        }
        let lines = CompoundOperation(operations: compounds).debugDescription.split(separator: "\n")
        #expect(lines.count == OperationTree.length)
        #expect(lines.last == "    … and more")
    }

    @Test("A description follows the dependencies of many children once, not for each of them") func chain() {
        let reads = Shared(0)
        let children = (0..<9_000).map { _ in ReadOperation() }
        for (child, next) in zip(children, children.dropFirst()) { child.addDependency(next) }
        let compound = CompoundOperation(name: "Many", operations: children)
        for child in children { child.willRead.value = { _ = reads.increment() } }
        #expect(compound.debugDescription.contains("waiting for “ReadOperation”, which waits for “ReadOperation”"))
        #expect(reads.value < 3_000)
    }
}

@Suite("Descriptions: reasons", .hangGuard) struct ChildSnapshotTests {
    /// A composite of a width of 2 with two children.
    private static func readiness(isStarted: Bool = true, _ change: (inout ReadinessStateMachine) -> Void = { _ in })
        -> ReadinessStateMachine
    {
        var readiness = ReadinessStateMachine(limit: 2)
        for operation in [AsyncOperation(), AsyncOperation()] {
            readiness.registered(readiness.table.insert(operation), priority: .normal)
        }
        guard isStarted else { return readiness }
        readiness.prepared()
        readiness.started()
        change(&readiness)
        return readiness
    }

    private static let schedules = [
        readiness(isStarted: false), readiness { $0.places.isSuspended = true }, readiness { $0.cancellationStarted() },
        readiness { while $0.startNext() != nil {} }, readiness(),
    ]

    private static let ready = [
        nil, "ready, but the children are suspended", "ready, but the children are being cancelled",
        "ready, but the limit of 2 is reached", "ready, waiting for a thread",
    ]

    // not begun | suspended | cancelling | limit 2 | none
    static let table: [(ChildPhase, isReady: Bool, [String?])] = [
        (.added, true, [nil] + Array(repeating: "about to become ready", count: 4)),
        (.waiting, true, [nil] + Array(repeating: "about to become ready", count: 4)),
        (.ready, true, ready),
        (.starting, true, Array(repeating: "starting", count: 5)),
        (.detached, true, Array(repeating: "starting", count: 5)),
        (.ending(.detached), true, Array(repeating: "starting", count: 5)),
        (.queuedUnready, false, Array(repeating: "not ready by itself", count: 5)),
        (.queued, true, ready),
    ]

    @Test("A description says why a child has not started, whatever its state and its parent's", arguments: table)
    func reasons(phase: ChildPhase, isReady: Bool, reasons: [String?]) {
        let wait = "waiting for “b”, which is starting"
        let waits = [ChildSnapshot.Stage.waiting, .queued].contains(phase.stage)
        for (readyText, reason) in zip(Self.schedules.map(\.readyText), reasons) {
            func text(wait: String?) -> String? {
                ChildSnapshot.reason(phase.stage, wait: wait, isReady: isReady, readyText: readyText)
            }
            #expect(text(wait: nil) == reason, "\(readyText as Any)")
            #expect(
                text(wait: wait) == (waits ? wait : reason),
                "Who waits for another one says so, unless that does not matter any more.")
        }
    }
}
