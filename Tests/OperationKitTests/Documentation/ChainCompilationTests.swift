#if os(Linux) || os(macOS)
import OperationKitTestSupport

/// What the compiler makes of long chains, as users write them: without annotations.
@Suite("Chains that the compiler checks", .hangGuard) struct ChainCompilationTests {
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

    private static let others = [
        CodeBlock(
            file: "Bindings.swift", line: 1,
            code: ["let (source, target) = (Own(), Own())"]
                + Array(
                    repeating: [
                        "target.bind(\\.value, to: source, \\.value)", "target.bind(\\.maybe, to: source, \\.value)",
                        "target.bind(\\.value, to: source, \\.maybe)", "target.bind(\\.maybe, to: source, \\.maybe)",
                        "target.bind(to: source) { target, source in target.value = source.value + 1 }",
                        "target.bind(\\.value, to: Add(), \\.output)",
                    ], count: length / 6
                ).joined()),
        CodeBlock(
            file: "Builder.swift", line: 1,
            code: ["_ = CompoundOperation(name: \"all\") {", "    " + waterfall] + (untyped + untyped + untyped)
                + ["    .with(input: 1)", "    MacroOperation(Add())"]
                + Array(repeating: ".then(IOBlockOperation { x in x + 1 })", count: length) + [
                    "    .with(input: 1)", "}",
                ]),
    ]

    @Test("Chains of twelve of every kind compile, without annotations and with `to:`") func chains() async throws {
        let chains = Self.chains.enumerated().map { Self.chain("Chain\($0)", $1[0], Array($1.dropFirst())) }
        let messages = try await TypeChecker().check(
            [Self.declarations] + chains + Self.others, scopeLimit: Self.scopeLimit)
        #expect(messages == nil, "\(messages ?? "")")
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
        let messages = try await TypeChecker().check([Self.declarations] + chains, scopeLimit: Self.scopeLimit)
        let errors = try #require(messages).split(separator: "\n").filter {
            $0.contains(".swift:") && $0.contains(" error: ")
        }
        for chain in chains { #expect(errors.contains { $0.contains("\(chain.file):8:") }, "\(chain.file): \(errors)") }
        for error in errors { #expect(error.contains(".swift:8:")) }
    }
}
#endif
