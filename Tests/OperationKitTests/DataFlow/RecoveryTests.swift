import OperationKitTestSupport

@Suite("Recovery by an operation", .hangGuard) struct RecoveryTests {
    private static func failing(_ name: String = "source") -> Step<Int, Int> {
        Step(name) { step, input in elsewhere { step.finish(withError: TestError.numbered(input)) } }
    }

    /// Is cancelled by its own work, which then reports something.
    private static func cancelled(reporting error: any Error) -> IOOperation<Int, Int> {
        Step("source") { step, _ in
            step.cancel()
            step.finish(withError: error)
        }
    }

    enum Kind: CaseIterable, Sendable {
        case value, operation

        /// Makes what recovers with 5, and writes down the errors that it is asked about.
        func make(_ source: IOOperation<Int, Int>, _ log: EventLog) -> IOOperation<Int, Int> {
            switch self {
            case .value:
                source.recover { error in
                    log.add(text(error))
                    return 5
                }
            case .operation:
                source.recoverRun { error in
                    log.add(text(error))
                    return Step<Int, Int>.increment("made", log: log).with(input: 4)
                }
            }
        }
    }

    @Test("A recovery is asked about its source's failure", arguments: Kind.allCases) func recovery(kind: Kind) async {
        let sources: [(String, IOOperation<Int, Int>)] = [
            ("numbered(3)", Self.failing()),
            ("reason", Step("source") { step, _ in step.cancel(withError: TestError.reason) }),
            ("first", Self.cancelled(reporting: TestError.first)),
        ]
        for (error, source) in sources {
            let log = EventLog()
            let recovered = kind.make(source, log).with(input: 3)
            await Start.byHand(recovered)
            #expect(recovered.output == 5 && recovered.error == nil)
            #expect(log.events == (kind == .value ? [error] : [error, "made"]))
        }
    }

    @Test("No recovery is asked without a failure", arguments: Kind.allCases) func notAsked(kind: Kind) async {
        let log = EventLog()
        let (left, missing) = (CocoaError(.userCancelled), IOOperationError.missingInput(operation: "source"))
        let sources: [(String, IOOperation<Int, Int>)] = [
            ("success", Step<Int, Int>.increment("source").with(input: 1)),
            ("cancelled", Step { step, _ in step.cancel() }.with(input: 1)),
            (text(left), Self.cancelled(reporting: left).with(input: 1)),
            (text(missing), Step.increment("source")),
        ]
        for (end, source) in sources {
            let recovered = kind.make(source, log)
            await Start.byHand(recovered)
            #expect(text(recovered.error) == end && recovered.output == (end == "success" ? 2 : nil))
        }
        #expect(log.events.isEmpty)
    }

    @Test("A cancelled recovery is not asked, and the end of its source stands", arguments: [nil, TestError.first])
    func cancelled(failure: TestError?) async {
        let (log, source) = (EventLog(), ManualOperation<Int, Int>(ignoresCancellation: true))
        let recovered = Kind.operation.make(source, log).with(input: 0)
        recovered.start()
        await source.started()
        recovered.cancel()
        source.finish(withError: failure ?? CancellationError() as any Error)
        try? await recovered.finished()
        #expect(text(recovered.error) == (failure == nil ? "cancelled" : "first") && log.events.isEmpty)
    }

    @Test("A recovery that returns itself, or what it is in, is an error by name") func containment() async {
        let returned = Shared<IOOperation<Int, Int>?>(nil)
        func recovered(_ name: String, from source: IOOperation<Int, Int>? = nil) -> IOOperation<Int, Int> {
            let recovered = (source ?? Self.failing()).recoverRun { _ in try #require(returned.value) }
            recovered.name = name
            return recovered.with(input: 0)
        }
        let (itself, outer, source) = (recovered("a"), recovered("inner").map { $0 }.with(input: 0), Self.failing("a"))
        outer.name = "a"
        let cases = [(itself, itself, "a"), (outer, outer, "inner"), (recovered("same", from: source), source, "same")]
        for (operation, made, compound) in cases {
            returned.value = made
            await Start.byHand(operation)
            #expect(operation.error as? CompoundAdditionError == .alreadyAdded(operation: "a", compound: compound))
        }
        returned.value = nil
        #expect(itself.error?.localizedDescription.contains(", is or contains “a”, ") == true)
    }

    @Test("A recovery that returns a composite that is executing is an error") func executingComposite() async {
        let step = ManualOperation<Int, Int>()
        let macro = MacroOperation(step).named("macro").with(input: 1)
        macro.start()
        await step.started()
        // It may be waiting for the recovery.
        let recovered = Self.failing().recoverRun { _ in macro }.with(input: 0)
        await Start.byHand(recovered)
        #expect(recovered.error as? CompoundAdditionError == .alreadyAdded(operation: "macro", compound: "source"))
        #expect(recovered.error?.localizedDescription.contains(", or may wait for “source”. ") == true)
        macro.cancel()
        await #expect(throws: CancellationError.self) { try await macro.value }
    }

    @Test("A description has the operation that runs, and nothing else") func description() async {
        let (source, made) = (ManualOperation<Int, Int>(name: "source"), ManualOperation<Void, Int>(name: "made"))
        let recovered = source.recoverRun { _ in made }.with(input: 1)
        func expectLine(_ name: String) async {
            // That the first one is over is known there a moment later.
            await eventually("is \(withoutAges(recovered))") {
                let lines = withoutAges(recovered).split(separator: "\n")
                return lines.count == 2 && lines[1].contains(name)
            }
        }
        await expectLine("source")
        recovered.start()
        await source.started()
        await expectLine("source")
        source.finish(withError: TestError.first)
        await made.started()
        await expectLine("made")
        recovered.cancel()
        await #expect(throws: CancellationError.self) { try await recovered.value }
    }

    @Test("The recovery's operation counts in the progress") func progress() async {
        let (made, log) = (ManualOperation<Void, Int>(), ProgressLog())
        let recovered = Self.failing().recoverRun { _ in made }.with(input: 1)
        log.watch(recovered)
        recovered.start()
        await made.started()
        made.progress.totalUnitCount = 2
        made.progress.completedUnitCount = 1
        log.look()
        made.finish(with: 1)
        // Half of the last tenth.
        #expect(log.fractions.count == 1 && log.fractions.allSatisfy { abs($0 - 0.95) < 0.000_001 }, "\(log.fractions)")
    }
}

@Suite("Transforming operations", .hangGuard) struct TransformTests {
    private static let cancelled: @Sendable () -> Step<Int, Int> = {
        Step { step, _ in step.cancel(withError: TestError.reason) }
    }

    private static let failures: [(make: @Sendable () -> IOOperation<Int, Int>, outcome: String)] = [
        ({ Step<Int, Int>.failing().map { $0 } }, "first"),
        ({ Step.increment("source").map { _ -> Int in throw TestError.second } }, "second"),
        ({ Step<Int, Int>.failing().mapError { _ in TestError.second } }, "second"),
        ({ cancelled().mapError { $0 as? TestError == .reason ? TestError.second : .first } }, "second"),
        ({ Step<Int, Int>.failing().recover { $0 as? TestError == .first ? 7 : 0 } }, "7"),
        ({ Step<Int, Int>.failing().recover { _ in throw TestError.second } }, "second"),
        ({ Step<Int, Int>.failing().recoverRun { _ -> TaskOperation<Int> in throw TestError.second } }, "second"),
    ]

    @Test("An error passes through, is replaced or recovered from, as the closure says", arguments: failures.indices)
    func failure(index: Int) async {
        let operation = Self.failures[index].make().with(input: 1)
        await Start.byHand(operation)
        #expect((operation.output.map { "\($0)" } ?? text(operation.error)) == Self.failures[index].outcome)
    }

    @Test("A transform is not called for the result of a source that belongs to another one", arguments: [false, true])
    func aSourceOfAnother(hasFailed: Bool) async {
        let log = EventLog()
        let source: Step<Int, Int> = hasFailed ? .failing("source") : .increment("source")
        let owner = source.map { $0 }.with(input: 0)
        let note: @Sendable (any Sendable) -> Int = { _ in
            log.add("called")
            return 0
        }
        await Start.byHand(owner)
        let recovered = source.recoverRun { error in TaskOperation { [number = note(error)] in number } }
        for transformed in [source.map(note), source.recover(note), recovered] {
            await Start.byHand(transformed.with(input: 0))
            #expect(transformed.error as? ChainError == .alreadyUsed(operation: "source", chain: "source"))
        }
        #expect(log.events.isEmpty)
        // It belongs to that one as long as that lives.
        withExtendedLifetime(owner) {}
    }

    @Test("A transforming operation that has ended holds neither source nor output", arguments: [false, true])
    func theSourceIsReleased(isCancelled: Bool) async throws {
        let tracker = LeakTracker()
        let transformed = {
            let source = Step<Int, LeakTracker.Token>("source") { step, _ in
                step.finish(with: tracker.token("output"))
            }
            return tracker.track(source, "source").map { _ in 1 }.mapError { $0 }.with(input: 0)
        }()
        if isCancelled { transformed.cancel() }
        await Start.byHand(transformed)
        await tracker.expectAllReleased()
        #expect(transformed.output == (isCancelled ? nil : 1))
    }

    @Test("What depends on a recovered operation finds its closure released") func theClosureIsReleased() async throws {
        for _ in 0..<TestExtent.choose(50, long: 1_000) {
            let (tracker, alive) = (LeakTracker(), Shared(["nothing was looked at"]))
            let recovered = TaskOperation<Int> { throw TestError.first }.recoverRun {
                [token = tracker.token("closure")] _ in
                token.use()
                return TaskOperation { 1 }
            }
            let dependent = BlockOperation { alive.value = tracker.alive }
            dependent.addDependency(recovered)
            await runAll([dependent, recovered])
            #expect(alive.value.isEmpty)
        }
    }
}
