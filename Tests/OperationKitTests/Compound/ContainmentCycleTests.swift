import OperationKitTestSupport

@testable import OperationKit

@Suite("Cycles through what contains an operation", .hangGuard) struct ContainmentCycleTests {
    enum Part: CaseIterable, Sendable {
        case block, throwing, asynchronous, compound, blockOfACompound, stepOfAMacro, sourceOfAMap, stepOfAMappedMacro

        /// An operation to put into a compound, and that of its parts that is meant. A closure gets that before all others.
        func make(_ use: (Operation) -> Void = { _ in }) -> (child: Operation, part: Operation) {
            let part: Operation =
                switch self {
                case .block, .blockOfACompound: BlockOperation()
                case .throwing: ThrowingBlockOperation {}
                case .asynchronous: ScriptedOperation()
                case .compound: CompoundOperation(operations: (0..<20).map { _ in BlockOperation {} })
                case .stepOfAMacro, .sourceOfAMap, .stepOfAMappedMacro: Step.increment("part")
                }
            part.name = "part"
            use(part)
            if self == .blockOfACompound {
                let inner = CompoundOperation(name: "child", operations: [part])
                return (CompoundOperation(name: "between", operations: [inner]), part)
            }
            guard let step = part as? Step<Int, Int> else { return (part, part) }
            let child: IOOperation<Int, Int> =
                switch self {
                case .stepOfAMacro: chain(of: (0..<20).map { .increment("\($0)") } + [step])
                case .sourceOfAMap: step.map { $0 }
                default: chain(of: [step]).then(Step.increment("last")).map { $0 }
                }
            return (child.with(input: 0), part)
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
        await Start.byHand(outer)
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

    @Test(
        "The addition of what a compound waits for throws, and adds nothing", arguments: Part.allCases, [false, true])
    func additionOfDependency(_ kind: Part, isWaitedForBefore: Bool) async throws {
        for isAround in [false, true] {
            let inner = CompoundOperation(name: "inner")
            let outer = CompoundOperation(name: "outer", operations: [inner])
            let waiting = isAround ? outer : inner
            let (child, part) = kind.make { if isWaitedForBefore { waiting.addDependency($0) } }
            child.name = "child"
            if !isWaitedForBefore { waiting.addDependency(part) }
            let error = #expect(throws: CompoundOperationError.self) {
                try inner.addOperations([BlockOperation(), child])
            }
            #expect(cyclePath(of: error) == ["inner", "child", isAround ? "outer" : "inner"])
            // It may be used elsewhere.
            try await OperationQueue().run(CompoundOperation(operations: [child]))
            #expect(part.isFinished)
            try await OperationQueue().run(outer)
        }
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

    @Test("What a compound waited for and has finished can be added to it") func finishedDependency() async throws {
        let compound = CompoundOperation(name: "compound")
        let unfinished = BlockOperation()
        compound.addDependency(unfinished)
        for operation in [BlockOperation(), ThrowingBlockOperation {}, ScriptedOperation { $0.finish() }] {
            compound.addDependency(operation)
            operation.start()
            try compound.addOperation(operation)
        }
        unfinished.start()
        try await OperationQueue().run(compound)
    }
}

#if DEBUG
@Suite("What composites are recorded to depend on", .hangGuard) struct CompositeDependenciesTests {
    @Test("A composite is recorded once until it starts, is part of another one, or freed") func recorded() async {
        let (awaited, child) = (AsyncOperation(), ScriptedOperation.idle())
        func count() -> Int { CompositeDependencies.count(waitingFor: awaited) }
        var compounds = (0..<100).map { _ in CompoundOperation() }
        let (executing, cancelled) = (CompoundOperation(operations: [child]), CompoundOperation())
        let macro = MacroOperation(Step.increment("first"))
        for composite in compounds + [executing, cancelled, macro] as [AsyncOperation] {
            for _ in 0..<3 { composite.addDependency(awaited) }
        }
        #expect(CompositeDependencies.composites(waitingForOneOf: [awaited, awaited]).count == 103 && count() == 103)
        compounds.removeLast(60)
        #expect(count() == 43)
        cancelled.cancel()
        await onThread { for compound in [executing, cancelled] { compound.start() } }
        #expect(count() == 41)
        for compound in [executing, cancelled] { compound.addDependency(awaited) }
        let longer = macro.then(Step.increment("next"))
        #expect(count() == 40)
        longer.addDependency(awaited)
        compounds.removeAll()
        #expect(CompositeDependencies.composites(waitingForOneOf: [awaited]).map { $0 === longer } == [true])
        #expect(count() == 1)
        child.finish()
        for compound in [executing, cancelled] { try? await compound.finished() }
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
