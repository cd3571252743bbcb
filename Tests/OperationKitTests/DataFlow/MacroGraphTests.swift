import OperationKitTestSupport

/// What a linear chain cannot express.
@Suite("Graphs of steps", .hangGuard) struct MacroGraphTests {
    private let length = IOBlockOperation<String, Int>(name: "length") { $0.count }
    private let double = IOBlockOperation<Int, Int>(name: "double") { $0 * 2 }
    private let text = IOBlockOperation<Int, String>(name: "text") { "<\($0)>" }

    @Test("A later step takes the output of an earlier one, and runs after the step in between")
    func earlierOutput() async {
        let log = EventLog()
        let download = IOBlockOperation<String, String>(name: "download") { $0 + ".zip" }
        let process = IOBlockOperation<String, Int>(name: "process") { input in
            log.add("process \(input)")
            return 1
        }
        let cleanUp = IOBlockOperation<String, String>(name: "clean up") { input in
            log.add("clean up \(input)")
            return "done"
        }
        let macro = MacroOperation(download).then(process).then(cleanUp, inputFrom: download)
        await Start.byHand(macro.with(input: "photo"))
        #expect(log.events == ["process photo.zip", "clean up photo.zip"] && macro.output == "done")
    }

    @Test("One output is fanned out to two steps, whose outputs are joined again") func fanOut() async {
        let macro = MacroOperation(length).then(concurrently: double, text)
            .then(IOBlockOperation<(Int, String), String> { "\($0.0) \($0.1)" })
        await Start.byHand(macro.with(input: "four"))
        #expect(macro.output == "8 <4>")
    }

    @Test("One output is fanned out to any number of steps", arguments: [0, 1, 100]) func anyNumber(count: Int) async {
        let steps = (0..<count).map { number in IOBlockOperation<Int, Int> { $0 + number } }
        let macro = MacroOperation(length).then(concurrently: steps).then(
            IOBlockOperation<[Int], Int> { $0.reduce(0, +) })
        await Start.byHand(macro.with(input: "four"))
        #expect(macro.output == (0..<count).reduce(0) { $0 + 4 + $1 })
    }

    @Test("`failedStep` counts the steps as they were added, concurrent ones too") func failedStepIndex() async {
        let failing = IOBlockOperation<(Int, String), Int>(name: "failing") { _ in throw TestError.first }
        let macro = MacroOperation(length).then(concurrently: double, text).then(failing)
        await Start.byHand(macro.with(input: "four"))
        #expect(
            macro.failedStep?.index == 3 && macro.failedStep?.name == "failing" && macro.failedStep?.siblingCount == 4)
    }

    @Test("A step that fails cancels the step that runs at the same time") func failureBeside() async {
        let began = Gate()
        let waiting = Step<Int, Int>("waiting") { _, _ in began.open() }
        let failing = IOTaskOperation<Int, Int>(name: "failing") { _ in
            await began.opened()
            throw TestError.first
        }
        let macro = MacroOperation(length).then(concurrently: waiting, failing)
        await Start.byHand(macro.with(input: "four"))
        #expect(macro.failedStep?.name == "failing" && waiting.isCancelled && waiting.isFinished)
    }

    @Test("An input from an operation that is no step is an error with its name") func notAStep() async {
        let outside = IOBlockOperation<Int, Int>(name: "outside") { $0 }
        let first = MacroOperation(length)
        first.name = "macro"
        let macro = first.then(double, inputFrom: outside).with(input: "four")
        await Start.byHand(macro)
        #expect(macro.error as? ChainError == .notAStep(operation: "outside", chain: "macro"))
        #expect(!double.isFinished && length.isFinished)
    }

    #if os(Linux) || os(macOS)
    @Test("Types that do not fit do not compile") func wrongTypes() async throws {
        let code = [
            "let length = IOBlockOperation<String, Int> { $0.count }",
            "let shout = IOBlockOperation<String, String> { $0.uppercased() }",
            "let sum = IOBlockOperation<(Int, String), Int> { $0.0 }",
            "_ = MacroOperation(length).then(shout)",
            "_ = MacroOperation(shout).then(length).then(sum, inputFrom: length, length)",
            "_ = MacroOperation(shout).then(length).then(length, inputFrom: length)",
            "_ = MacroOperation(shout).then(concurrently: length, shout).then(length)",
            "let bound: Int = Waterfall<String, String>().then { $0.count }.output",
            "length.bind(\\.input, to: length, \\.output)",
        ]
        let messages = try #require(
            try await TypeChecker().check([CodeBlock(file: "Wrong.swift", line: 1, code: code)]))
        for line in 4...9 { #expect(messages.contains("Wrong.swift:\(line):"), "line \(line): \(messages)") }
        for line in 1...3 { #expect(!messages.contains("Wrong.swift:\(line): error"), "\(messages)") }
    }
    #endif
}

/// Bindings and requirements between the steps of one macro, besides the inputs that the macro hands over.
@Suite("Bindings between steps", .hangGuard) struct MacroBindingTests {
    @Test("A step takes from the step before it what a binding says", arguments: [false, true])
    func aBindingToTheStepBefore(isBoundFirst: Bool) async throws {
        let first = Step.increment("first")
        let second = Step.increment("second")
        let log = EventLog()
        let bind = {
            second.bind(\.name, to: first, \.name)
            second.requireSuccess(of: first)
            second.bind(to: first) { _, first in log.add("\(first.output ?? -1)") }
        }
        if isBoundFirst { bind() }
        let macro = MacroOperation(first).then(second)
        if !isBoundFirst { bind() }
        #expect(try await OperationQueue().run(macro.with(input: 0)) == 2)
        #expect(second.name == "first" && log.events == ["1"])
    }

    @Test("A step takes from several steps before it what bindings say")
    func bindingsToStepsThatAreJoined() async throws {
        let (first, left, right) = (Step.increment("first"), Step.increment("left"), Step.increment("right"))
        let log = EventLog()
        let sum = IOBlockOperation<(Int, Int), Int>(name: "sum") { $0 + $1 }
        let last = IOBlockOperation<Int, Int>(name: "last") { $0 }
        let macro = MacroOperation(first).then(concurrently: left, right).then(sum, inputFrom: left, right)
            .then(last, inputFrom: first)
        for source in [first, left, right] {
            sum.bind(to: source) { _, source in log.add(source.name ?? "") }
            last.requireSuccess(of: source)
        }
        last.bind(to: sum) { last, sum in last.input = sum.output }
        #expect(try await OperationQueue().run(macro.with(input: 0)) == 4)
        #expect(log.events == ["first", "left", "right"])
    }

    @Test("A step that has started holds no step before it")
    func stepsAreReleasedAsTheyFinish() async throws {
        let tracker = LeakTracker()
        let (began, proceed, log) = (Gate(), Gate(), EventLog())
        let last = IOTaskOperation<Int, Int>(name: "last") { input in
            began.open()
            await proceed.opened()
            return input
        }
        let macro = {
            let first = tracker.track(Step.increment("first"), "first")
            let macro = MacroOperation(first).then(last).with(input: 0)
            last.bind(to: first) { _, first in log.add(first.name ?? "") }
            return macro
        }()
        macro.start()
        await began.opened()
        await tracker.expectAllReleased()
        proceed.open()
        #expect(try await macro.value == 1 && log.events == ["first"])
    }
}
