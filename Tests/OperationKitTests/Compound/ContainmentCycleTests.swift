import OperationKitTestSupport

@testable import OperationKit

@Suite("Cycles through what contains an operation", .hangGuard) struct ContainmentCycleTests {
    /// A part of a composite, and how deep it is there.
    enum Part: CaseIterable, Sendable {
        case block, throwing, asynchronous, compound, blockOfACompound, stepOfAMacro, sourceOfAMap, stepOfAMappedMacro

        /// An operation to put into a compound, and that of its parts that is meant.
        func make() -> (child: Operation, part: Operation) {
            let step = Step.increment("part")
            let simple: Operation
            switch self {
            case .block: simple = BlockOperation()
            case .throwing: simple = ThrowingBlockOperation {}
            case .asynchronous: simple = ScriptedOperation { $0.finish() }
            case .compound: simple = CompoundOperation(operations: (0..<20).map { _ in BlockOperation {} })
            case .blockOfACompound:
                let part = BlockOperation()
                part.name = "part"
                let inner = CompoundOperation(name: "child", operations: [part])
                return (CompoundOperation(name: "between", operations: [inner]), part)
            case .stepOfAMacro:
                return (chain(of: (0..<20).map { .increment("\($0)") } + [step]).with(input: 0), step)
            case .sourceOfAMap: return (step.map { $0 }.with(input: 0), step)
            case .stepOfAMappedMacro:
                return (chain(of: [step]).then(Step.increment("last")).map { $0 }.with(input: 0), step)
            }
            simple.name = "part"
            return (simple, simple)
        }
    }

    @Test("A step that waits for a compound around its macro is a cycle", arguments: [false, true])
    func stepThatWaits(isMapped: Bool) async {
        let step = Step.increment("step")
        var macro: IOOperation<Int, Int> = chain(of: [.increment("first"), step])
        if isMapped { macro = macro.map { $0 } }
        macro.name = "macro"
        macro.input = 0
        let outer = CompoundOperation(
            name: "outer", operations: [CompoundOperation(name: "between", operations: [macro])])
        step.addDependency(outer)
        await onThread { outer.start() }
        await #expect(throws: CompoundOperationError.self) { try await outer.finished() }
        #expect(cyclePath(of: macro.error)?.last == "outer" && step.isFinished)
    }

    @Test("The operation of a job that waits for what is around its waterfall is a cycle, and that itself is refused")
    func operationThatWaits() async {
        for isItself in [false, true] {
            let around = Shared<IOOperation<Int, Int>?>(nil)
            let waterfall = Waterfall<Int, Int>(name: "waterfall").thenRun { value in
                let outer = try #require(around.value)
                if isItself { return outer }
                let made = Step.increment("made").with(input: value)
                made.addDependency(outer)
                return made
            }
            let outer = waterfall.map { $0 }.with(input: 0)
            outer.name = "outer"
            around.value = outer
            waterfall.input = 0
            // By hand, what is around it has not begun.
            await Start.byHand(isItself ? waterfall : outer)
            around.value = nil
            let refusal = CompoundAdditionError.alreadyAdded(operation: "outer", compound: "waterfall")
            #expect(cyclePath(of: outer.error) == (isItself ? nil : ["waterfall", "made", "outer"]))
            #expect(waterfall.error as? CompoundAdditionError == (isItself ? refusal : nil))
        }
    }

    @Test("A composite that is made to wait for a part of it ends with the cycle", arguments: Part.allCases)
    func aDependencyOnAPart(_ kind: Part) async {
        for isInCompound in [true, false] {
            let (child, part) = kind.make()
            let compound = CompoundOperation(operations: [child])
            guard let composite = isInCompound ? compound : child as? AsyncOperation, composite !== part else {
                continue
            }
            composite.name = "composite"
            composite.addDependency(part)
            #expect(composite.dependencies.isEmpty && !composite.isFinished)
            await Start.byHand(composite)
            #expect(cyclePath(of: composite.error) == ["composite", "composite", "part"])
            #expect(child.isFinished)
            withExtendedLifetime((part, compound)) {}
        }
    }

    @Test("The addition of what a compound waits for throws, and adds nothing", arguments: Part.allCases)
    func additionOfDependency(_ kind: Part) async throws {
        for isAround in [false, true] {
            let (child, part) = kind.make()
            child.name = "child"
            let inner = CompoundOperation(name: "inner")
            let outer = CompoundOperation(name: "outer", operations: [inner])
            let waiting = isAround ? outer : inner
            waiting.addDependency(part)
            let error = #expect(throws: CompoundOperationError.self) {
                try inner.addOperations([BlockOperation(), child])
            }
            #expect(cyclePath(of: error) == ["inner", "child", isAround ? "outer" : "inner"])
            // It may be used elsewhere.
            let other = CompoundOperation(operations: [child])
            await onThread { other.start() }
            try await other.finished()
            #expect(part.isFinished)
            await onThread { outer.start() }
            try await outer.finished()
        }
    }

    @Test("A compound inside which there is what another one waits for cannot be added to that one")
    func whatIsWaitedForGoesUp() throws {
        let (block, leaf, step) = (BlockOperation(), ScriptedOperation(), Step.increment("step"))
        let outer = CompoundOperation(name: "outer")
        for part in [block, leaf, step] { outer.addDependency(part) }
        for part in [block, leaf] {
            let inner = CompoundOperation(name: "inner")
            let between = CompoundOperation(name: "between", operations: [inner])
            try inner.addOperation(part)
            #expect(throws: CompoundOperationError.self) { try outer.addOperation(between) }
        }
        let longer = MacroOperation(step).then(Step.increment("next"))
        #expect(throws: CompoundOperationError.self) { try outer.addOperation(longer) }
    }

    @Test("What a compound waits for can be added inside one that runs in it", arguments: [false, true])
    func insideOneThatRuns(isLarge: Bool) async throws {
        let awaited = CompoundOperation(
            name: "awaited", operations: (0..<(isLarge ? 20 : 1)).map { _ in BlockOperation {} })
        let pending = CompoundOperation(name: "pending")
        let running = CompoundOperation(name: "running", operations: [pending], maxConcurrentOperationCount: 0)
        await onThread { running.start() }
        let outer = CompoundOperation(name: "outer")
        outer.addDependency(awaited)
        try outer.addOperation(running)
        try pending.addOperation(awaited)
        running.maxConcurrentOperationCount = 1
        try await OperationQueue().run(outer)
        #expect(awaited.isFinished && pending.error == nil)
    }

    @Test("What a compound waited for and has finished can be added to it")
    func finishedDependency() async throws {
        let compound = CompoundOperation(name: "compound")
        let unfinished = BlockOperation()
        compound.addDependency(unfinished)
        for operation in [BlockOperation(), ThrowingBlockOperation {}, ScriptedOperation { $0.finish() }] {
            compound.addDependency(operation)
            operation.start()
            try compound.addOperation(operation)
        }
        unfinished.start()
        await onThread { compound.start() }
        try await compound.finished()
    }
}

#if DEBUG
@Suite("What composites are recorded to depend on", .hangGuard) struct CompositeDependenciesTests {
    @Test("A composite is recorded once for each operation, until it is freed") func freed() {
        let awaited = AsyncOperation()
        var compounds: [CompoundOperation] = []
        for _ in 0..<100 {
            let compound = CompoundOperation()
            for _ in 0..<3 { compound.addDependency(awaited) }
            compounds.append(compound)
        }
        #expect(CompositeDependencies.count(waitingFor: awaited) == 100)
        #expect(CompositeDependencies.composites(waitingForOneOf: [awaited, awaited]).count == 100)
        compounds.removeLast(60)
        #expect(CompositeDependencies.count(waitingFor: awaited) == 40)
        compounds.removeAll()
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
    }

    @Test("A composite that has started is not recorded, whatever it depends on then", arguments: [true, false])
    func started(isCancelled: Bool) async {
        let awaited = AsyncOperation()
        let child = ScriptedOperation.idle()
        let compound = CompoundOperation(operations: [child])
        compound.addDependency(awaited)
        #expect(CompositeDependencies.count(waitingFor: awaited) == 1)
        if isCancelled { compound.cancel() }
        await onThread { compound.start() }
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
        compound.addDependency(awaited)
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
        child.finish()
        _ = try? await compound.finished()
    }

    @Test("A macro that becomes part of a longer one is not recorded") func consumed() {
        let awaited = AsyncOperation()
        let macro = MacroOperation(Step.increment("first"))
        macro.addDependency(awaited)
        let longer = macro.then(Step.increment("next"))
        #expect(CompositeDependencies.count(waitingFor: awaited) == 0)
        longer.addDependency(awaited)
        #expect(CompositeDependencies.composites(waitingForOneOf: [awaited]).map { $0 === longer } == [true])
        withExtendedLifetime(macro) {}
    }

    /// How deep the operation is inside what is added.
    @Test("What is added while the compound comes to depend on it excludes that, or is refused", arguments: [0, 1, 20])
    func sameTime(depth: Int) {
        for place in 0..<Interruption.bound {
            let awaited = AsyncOperation()
            let child = (0..<depth).reduce(awaited as AsyncOperation) { inner, _ in
                CompoundOperation(operations: [inner])
            }
            let compound = CompoundOperation(name: "compound")
            var isAdded = false
            let add = { isAdded = (try? compound.addOperation(child)) != nil }
            let depend = { compound.addDependency(awaited) }
            let interruption = Interruption(at: place, add)
            SchedulingProbe.observed(by: interruption) { depend() }
            if !interruption.hasRun { return }
            #expect(!isAdded || compound.dependencies.isEmpty, "at \(place)")
        }
        Issue.record("There are more places")
    }
}
#endif

extension CompositeDependencies {
    fileprivate static func count(waitingFor operation: Operation) -> Int {
        table.withLock { $0[ObjectIdentifier(operation)]?.count ?? 0 }
    }
}
