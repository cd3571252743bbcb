import OperationKitTestSupport

/// Compounds under races: whatever wins, they end once, after their children, with an outcome that fits.
@Suite("Compound: races", .hangGuard) struct CompoundRaceTests {
    private func makeChildren(_ count: Int, _ random: inout SplitMix64) -> [Operation] {
        let children = (0..<count).map { _ in ChildKind.allCases.randomElement(using: &random)!.make {} }
        for index in children.indices.dropFirst() where random.next() % 3 == 0 {
            children[index].addDependency(children[Int(random.next() % UInt64(index))])
        }
        return children
    }

    @Test(
        "Whatever threads do to a compound while it runs, it ends once, after its children, with an outcome that fits",
        arguments: [false, true], [false, true])
    func meetings(isCancelled: Bool, isSuspended: Bool) async {
        let seed = SplitMix64.freshSeed()
        var random = SplitMix64(seed: seed)
        let refused = Shared(0)
        // Both sides of the race of the additions have to be seen.
        for round in 0..<20_000 where round < TestExtent.choose(16, long: 300) || refused.value == 0 {
            let children = makeChildren(Int(random.next() % 20), &random)
            let compound = CompoundOperation(
                operations: children, maxConcurrentOperationCount: [-1, 1, 2].randomElement(using: &random)!)
            let (completions, isEarly, accepted, ran) = (Shared(0), Shared(false), Shared(children), Shared(0))
            compound.asyncCompletionBlock = { _ in
                completions.change { $0 += 1 }
                isEarly.value = !accepted.value.allSatisfy { $0.isFinished }
            }
            let (queue, ending, turns) = (OperationQueue(), Shared<[Operation]>([]), 1 + random.next() % 3_000)
            let add: @Sendable () -> Void = {
                for _ in 0..<20 {
                    let child = isCancelled ? ScriptedOperation.stoppable() : BlockOperation { ran.change { $0 += 1 } }
                    do {
                        try compound.addOperation(child)
                        accepted.change { $0.append(child) }
                    } catch {
                        refused.change { $0 += 1 }
                        if child.isFinished || child.isCancelled { Issue.record("A refused child is untouched.") }
                    }
                }
            }
            var bodies: [@Sendable () -> Void] = [{ queue.addOperation(compound) }, add, add]
            if isCancelled {
                bodies.append {
                    var random = SplitMix64(seed: seed)
                    random.spinRandomly(upTo: turns)
                    compound.cancel()
                    ending.value = children.filter { !$0.isCancelled && !$0.isFinished }
                }
            }
            if isSuspended {
                bodies.append {
                    for turn in 0..<20 { compound.isSuspended = turn % 2 == 0 }
                    compound.isSuspended = false
                }
                bodies.append {
                    for turn in 0..<20 { compound.maxConcurrentOperationCount = [0, 1, 4, -1][turn % 4] }
                    compound.maxConcurrentOperationCount = 2
                }
            }
            await concurrently(bodies)
            try? await compound.finished()
            #expect(compound.isFinished && !compound.isExecuting && completions.value == 1, "seed \(seed)")
            #expect(!isEarly.value && accepted.value.allSatisfy { $0.isFinished }, "seed \(seed)")
            // When `cancel()` returns, children are cancelled, or had ended, or deliver their outcome.
            #expect(
                ending.value.allSatisfy { ($0 as? AsyncOperation)?.error == nil && !$0.isCancelled }, "seed \(seed)")
            switch compound.error as? CompoundOperationError {
            case nil:
                #expect(!compound.isCancelled && ran.value == accepted.value.count - children.count, "seed \(seed)")
            case .cancelled(_, let errors, _): #expect(compound.isCancelled && errors.isEmpty, "seed \(seed)")
            case let error?: Issue.record("\(error), seed \(seed)")
            }
        }
        #expect(refused.value > 0)
    }

    /// Children of another library that finish in their own `cancel()`.
    enum Foreign: CaseIterable {
        case endsInStart, endsElsewhere, endsInCancelOnly, waitsForAnother, isReadyLate

        func make() -> ForeignOperation {
            ForeignOperation(isReady: self != .isReadyLate, endsInCancel: true) { operation in
                switch self {
                case .endsElsewhere: elsewhere { operation.finish() }
                case .endsInCancelOnly: break
                case .endsInStart, .waitsForAnother, .isReadyLate: operation.finish()
                }
            }
        }
    }

    /// A queue that such a child is on would trap, or use it once it is freed. For a moment after the end of a dependency, a child is
    /// not ready; one that was put on a queue then would crash it. Many compounds at the same time, because the fault was in a few
    /// instructions.
    @Test(
        "Children of other libraries that finish inside their own cancel() may be cancelled at any moment of their start",
        arguments: Foreign.allCases)
    func cancelThatFinishes(_ kind: Foreign) async {
        for round in 0..<TestExtent.choose(6, long: 100) {
            let queue = OperationQueue()
            let children = (0..<32 * 8).map { _ in kind.make() }
            let isLate = kind == .waitsForAnother || kind == .isReadyLate
            let compounds = (0..<32).map { index in
                let part = Array(children[index * 8..<index * 8 + 8])
                if kind == .waitsForAnother {
                    for (child, next) in zip(part, part.dropFirst()) { next.addDependency(child) }
                }
                return CompoundOperation(
                    operations: part, maxConcurrentOperationCount: isLate ? [-1, 1, 3][index % 3] : -1)
            }
            let cancel: @Sendable () -> Void = {
                if round % 2 == 0 { return queue.cancelAllOperations() }
                for compound in compounds { compound.cancel() }
            }
            for compound in compounds { queue.addOperation(compound) }
            if isLate {
                await concurrently([
                    cancel, { if kind == .isReadyLate { for child in children { child.becomeReady() } } },
                ])
            } else {
                cancel()
            }
            for compound in compounds { try? await compound.finished() }
            #expect(children.allSatisfy { $0.isFinished })
        }
    }

    #if !canImport(ObjectiveC)
    @Test("A child of another library that becomes ready late is started, also if it does not announce that")
    func lateReadiness() async throws {
        for announces in [true, false] {
            let began = Gate()
            let child = ForeignOperation(isReady: false) { _ in began.open() }
            let compound = CompoundOperation(operations: [child, BlockOperation {}], maxConcurrentOperationCount: 1)
            OperationQueue().addOperation(compound)
            await eventually("the other child waits") { compound.finishedOperationCount == 1 }
            child.becomeReady(announces: announces)
            await began.opened()
            try compound.addOperation(BlockOperation { #expect(child.isFinished) })
            try await OperationQueue().run(BlockOperation {})
            child.finish()
            try await compound.finished()
        }
    }
    #endif

    @Test("Of two concurrent additions that together close a cycle exactly one succeeds")
    func twoAdditions() async throws {
        for _ in 0..<TestExtent.choose(50, long: 300) {
            let began = Gate()
            let hold = ScriptedOperation(main: { _ in began.open() })
            let compound = CompoundOperation(operations: [hold])
            OperationQueue().addOperation(compound)
            // A cycle that is closed during the start is found by the start.
            await began.opened()
            let a = ScriptedOperation("a")
            let b = ScriptedOperation("b")
            a.addDependency(b)
            b.addDependency(a)
            let accepted = Shared(0)
            let add: @Sendable (Operation) -> Void = { operation in
                if (try? compound.addOperation(operation)) != nil { accepted.change { $0 += 1 } }
            }
            await concurrently([{ add(a) }, { add(b) }])
            #expect(accepted.value == 1)
            a.removeDependency(b)
            b.removeDependency(a)
            hold.finish()
            compound.cancel()
            try? await compound.finished()
        }
    }
}
