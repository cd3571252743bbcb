#if os(Linux) || os(macOS)
import OperationKitTestSupport

/// What the compiler makes of code as users write it: long chains without annotations, conformances, and mistakes.
@Suite("Code that the compiler checks", .hangGuard) struct ChainCompilationTests {
    private static let length = 12

    /// Far below the compiler's own limit, which is 1,000,000: the search for the types of a chain must not multiply with
    /// each job.
    private static let scopeLimit = 10_000

    /// What the chains use.
    private static let declarations = CodeBlock(
        file: "Declarations.swift", line: 1,
        code: [
            "public final class Add: IOOperation<Int, Int>, @unchecked Sendable {}",
            "public final class Join: IOOperation<(Int, Int), Int>, @unchecked Sendable {}",
            "public final class Sum: IOOperation<[Int], Int>, @unchecked Sendable {}",
            "public final class Own: AsyncOperation, @unchecked Sendable { var value = 1; var maybe: Int? }",
            "let one = Add()",
            "let length = IOBlockOperation<String, Int> { $0.count }",
            "let shout = IOBlockOperation<String, String> { $0.uppercased() }",
            "let sum = IOBlockOperation<(Int, String), Int> { $0.0 }",
            "@Sendable func load(_ number: Int) async throws -> Int { number }",
            "@Sendable func name(_ number: Int) async throws -> String { \"\" }",
        ])

    /// A statement that begins in line 1, with one job in each further line: as many as there are, over and over.
    private static func chain(_ name: String, _ head: String, _ jobs: [String]) -> CodeBlock {
        let jobs = (0..<length).map { "    " + jobs[$0 % jobs.count] }
        return CodeBlock(file: "\(name).swift", line: 1, code: ["_ = " + head] + jobs)
    }

    private static let waterfall = "Waterfall<Int, Int>()"
    private static let untyped = [
        ".then { x in x + 1 }",
        ".thenAwait { x in try await load(x) }",
        ".thenRun { x in TaskOperation { try await load(x) } }",
        ".thenDecide { x in x > 1 ? .value(x + 1) : .operation(TaskOperation { try await load(x) }) }",
    ]
    private static let typed = untyped.map { $0.replacing(" {", with: "(to: Int.self) {", maxReplacements: 1) }
    private static let named = untyped.map { $0.replacing(" {", with: "(name: \"a\") {", maxReplacements: 1) }

    /// The begin of a chain, and then its jobs.
    private static let chains: [[String]] =
        (untyped + typed).map { [waterfall, $0] } + [untyped, typed, named].map { [waterfall] + $0 }
            + #"""
            Waterfall<Int, Int>() | .then { $0 * 2 + 1 }
            Waterfall<Int, Int>() | .then { x in "\(x)" } | .then { text in text.count }
            Waterfall<Int, Int>() | .thenAwait { x in try await name(x) } | .then { text in text.count + 1 }
            Waterfall<Int, Int>() | .thenRun { x in Add().with(input: x) }
            Waterfall<Int, Int>() | .thenRun { x in IOBlockOperation { y in y + 1 }.with(input: x) }
            Waterfall<Int, Int>() | .thenRun { x in IOTaskOperation { y in try await load(y) }.with(input: x) }
            Waterfall<Int, Int>() | .then(progressWeight: 2) { x in x + 1 } | .then(to: Int.self, progressWeight: 3) { x in -x }
            Waterfall<Int, Int>() | .then(name: "a", to: Int.self) { x in x + 1 } | .thenRun(name: "b", to: Int.self) { x in Add() }
            Waterfall<Int, Int>() | .then(to: Int.self) { x in [x, x + 1].map { $0 * 2 }.reduce(0, +) }
            Waterfall<Int, Int>() | .thenRun { x in (0..<x).map { y in TaskOperation { try await load(y) } }.gathered() } | .then { a in a.count }
            MacroOperation(Add()) | .then(Add())
            MacroOperation(Add()) | .then(IOBlockOperation { x in x + 1 })
            MacroOperation(Add()) | .then(IOTaskOperation { x in try await load(x) }) | .then(IOBlockOperation { x in x * 2 + 1 })
            MacroOperation(Add()) | .then(IOTaskOperation(name: "a") { (x: Int) in try await load(x) }, progressWeight: 3)
            MacroOperation(one) | .then(IOBlockOperation { x in x + 1 }, inputFrom: one) | .then(Join(), inputFrom: one, one)
            MacroOperation(Add()) | .then(concurrently: IOBlockOperation { x in x + 1 }, Add()) | .then(IOBlockOperation { $0.0 + $0.1 })
            MacroOperation(Add()) | .then(concurrently: [IOBlockOperation { x in x + 1 }, IOBlockOperation { x in x - 1 }]) | .then(Sum())
            MacroOperation(Add()) | .then(IOBlockOperation<Int, Int>.finishing { x, finish in finish.onCancel {}; finish(with: x + 1) })
            MacroOperation(Add()) | .then(IOBlockOperation<Int, Int>.observing { x, work in try work.checkCancellation(); return x + 1 })
            MacroOperation(Add()) | .then(Add().map { x in x + 1 })
            Add() | .map { x in "\(x)" } | .map { text in text.count } | .recover { _ in 1 } | .mapError { $0 }
            Add() | .map(to: Int.self) { x in [x, x + 1].map { $0 * 2 }.reduce(0, +) }
            Add() | .recoverRun { error in Add().with(input: error.isCancellation ? 1 : 2) } | .recover { _ in 1 } | .recoverRun { _ in TaskOperation { try await load(1) } }
            [Add().with(input: 1), Add().with(input: 2)].gathered() | .map { numbers in numbers.count } | .map { x in [x] }
            """#.split(separator: "\n").map { $0.split(separator: " | ").map(String.init) }

    private static let bindings = CodeBlock(
        file: "Bindings.swift", line: 1,
        code: ["let (source, target) = (Own(), Own())"]
            + Array(
                repeating: [
                    "target.bind(\\.value, to: source, \\.value)", "target.bind(\\.maybe, to: source, \\.value)",
                    "target.bind(\\.value, to: source, \\.maybe)", "target.bind(\\.maybe, to: source, \\.maybe)",
                    "target.bind(to: source) { target, source in target.value = source.value + 1 }",
                    "target.bind(\\.value, to: Add(), \\.output)",
                ], count: length / 6
            ).joined())

    /// The strategy changes with one word, and a class need not be `Sendable`.
    private static let conformances = ["ParallelItemOperation", "SequentialItemOperation"].map { word in
        CodeBlock(
            file: "\(word).swift", line: 1,
            code: [
                """
                final class Sync: \(word) {
                    var seen: [Int] = []
                    func performOperation(onItem item: Int, completion: @escaping ItemCompletion) {
                        seen.append(item)
                        completion(nil)
                    }
                }
                func caller() async {
                    let sync = Sync()
                    let errors = await sync.performOperation(on: [1, 2])
                    print(sync.failures(in: [1, 2], errors: errors).map(\\.item) as [Int])
                    sync.performOperation(on: [1, 2]) { print($0) }
                    _ = try? await sync.performOperation(onEach: 1...2)
                    OperationQueue().addOperation(sync.makeOperation(on: [1, 2]))
                }
                """
            ])
    }

    private static let others =
        [
            bindings,
            CodeBlock(
                file: "Builder.swift", line: 1,
                code: ["_ = CompoundOperation(name: \"all\") {", "    " + waterfall] + (untyped + untyped + untyped)
                    + ["    .with(input: 1)", "    MacroOperation(Add())"]
                    + Array(repeating: ".then(IOBlockOperation { x in x + 1 })", count: length) + [
                        "    .with(input: 1)", "}",
                    ]),
        ] + conformances

    @Test("Chains of twelve, bindings and conformances compile without annotations") func chains() async throws {
        let chains = Self.chains.enumerated().map { Self.chain("Chain\($0)", $1[0], Array($1.dropFirst())) }
        let messages = try await TypeChecker().check(
            [Self.declarations] + chains + Self.others, scopeLimit: Self.scopeLimit)
        #expect(messages == nil, "\(messages ?? "")")
        let others = try await TypeChecker().check([Self.declarations, Self.bindings], languageMode: "5")
        #expect(others == nil, "\(others ?? "")")
    }

    /// The compiler's messages about the blocks, with their places.
    private static func messages(for blocks: [CodeBlock]) async throws -> [Substring] {
        let messages = try await TypeChecker().check([declarations] + blocks, scopeLimit: scopeLimit)
        return try #require(messages).split(separator: "\n").filter { $0.contains(".swift:") }
    }

    @Test("A mistake in a job of a chain with `to:` everywhere is reported in the line of that job, and nowhere else")
    func mistakes() async throws {
        let mistakes = [
            "Member": ".then(to: Int.self) { x in x.cuont }",
            "Result": ".thenAwait(to: Int.self) { x in try await name(x) }",
            "Output": ".thenRun(to: Int.self) { x in TaskOperation { try await name(x) } }",
            "Value": ".thenDecide(to: Int.self) { x in .value(\"\\(x)\") }",
            "Asynchronous": ".then(to: Int.self) { x in try await load(x) }",
            "Operation": ".then(to: Int.self) { x in TaskOperation { try await load(x) } }",
        ]
        let chains = mistakes.map { name, mistake in
            var chain = Self.chain(name, Self.waterfall, Self.typed)
            chain.code[7] = mistake
            return chain
        }
        let errors = try await Self.messages(for: chains).filter { $0.contains(" error: ") }
        for chain in chains { #expect(errors.contains { $0.contains("\(chain.file):8:") }, "\(chain.file): \(errors)") }
        for error in errors { #expect(error.contains(".swift:8:")) }
    }

    /// What has to be refused, and words of the message.
    private static let wrong = [
        ("_ = MacroOperation(length).then(shout)", "cannot convert"),
        ("_ = MacroOperation(shout).then(length).then(sum, inputFrom: length, length)", "cannot convert"),
        ("_ = MacroOperation(shout).then(length).then(length, inputFrom: length)", "cannot convert"),
        ("_ = MacroOperation(shout).then(concurrently: length, shout).then(length)", "cannot convert"),
        ("let bound: Int = Waterfall<String, String>().then { $0.count }.output", "cannot convert"),
        ("length.bind(\\.input, to: length, \\.output)", "no exact matches"),
        ("_ = WorkflowOperation<Int, Int> { flow in 1 }", "the form { input, flow in … }"),
        ("_ = WorkflowOperation { input, flow in 1 }", "the form { flow in … }"),
        ("length.finish()", "use finish(with:)"),
        // These must not become an endless recursion at run time.
        ("final class Neither: ParallelItemOperation, AsyncItemOperation {}", "does not conform"),
        ("final class None: ParallelBatchOperation, AsyncBatchOperation { let batchSize = 1 }", "does not conform"),
        // A class that is safe only in sequence would race after the change of one word. `Sendable` tells.
        (
            "final class Unsafe: SequentialItemOperation, Sendable { var count = 0; "
                + "func performOperation(onItem item: Int, completion: @escaping ItemCompletion) { count += item } }",
            "mutable"
        ),
    ]

    @Test("What does not fit, is missing or is not guarded does not compile") func wrongTypes() async throws {
        let block = CodeBlock(file: "Wrong.swift", line: 1, code: Self.wrong.map(\.0))
        let messages = try await Self.messages(for: [block])
        for (index, (code, words)) in Self.wrong.enumerated() {
            let isRefused = messages.contains { $0.contains("Wrong.swift:\(index + 1):") && $0.contains(words) }
            #expect(isRefused, "\(code): \(messages)")
        }
    }
}
#endif
