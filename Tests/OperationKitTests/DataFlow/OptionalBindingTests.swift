import OperationKitTestSupport

@Suite("Bindings of optional values", .hangGuard) struct OptionalBindingTests {
    private typealias Fetch = BindingTests.Fetch
    private typealias Process = BindingTests.Process
    private typealias PlainFetch = BindingTests.PlainFetch

    @Test("An optional value goes to a property that takes no `nil`, and `nil` to one that does") func value() async {
        let (fetch, search, empty) = (TaskOperation { ["Ada"] }, Fetch(finds: ["Grace"]), Fetch(finds: nil))
        let process = Process()
        process.bind(\.users, to: fetch, \.output)
        process.bind(\.title, to: search, \.last)
        process.bind(\.first, to: empty, \.last)
        await runAll([process, fetch, search, empty])
        #expect(process.log.events == ["main [\"Ada\"]"] && process.error == nil)
        #expect(process.title == "Grace" && process.first == nil)
    }

    /// Bindings whose source has no value, and what the error says then.
    private static let missing:
        [(property: String?, source: String?, text: String, bind: @Sendable (Process, Fetch, PlainFetch) -> Void)] = [
            (
                "users", "found", "in “found” for “users”.",
                { target, source, _ in target.bind(\.users, to: source, \.found) }
            ),
            ("title", nil, "for “title”.", { target, source, _ in target.bind(\.title, to: source, \.last) }),
            (nil, "note", "in “note” for it.", { target, source, _ in target.bind(\.heading, to: source, \.note) }),
            (nil, nil, "for it.", { target, source, _ in target.bind(\.heading, to: source, \.last) }),
            (
                "title", "note", "in “note” for “title”.",
                { target, _, plain in target.bind(\.title, to: plain, \.note) }
            ),
        ]

    @Test("A missing value ends the target with an error that names what is known of it", arguments: missing.indices)
    func missingValue(index: Int) async throws {
        let (missing, fetch, plain, process) = (Self.missing[index], Fetch(finds: nil), PlainFetch(), Process())
        plain.name = "fetch"
        missing.bind(process, fetch, plain)
        await runAll([process, fetch, plain])
        #expect(process.log.events.isEmpty && process.users.isEmpty && fetch.error == nil)
        let error = try #require(process.error as? DependencyError)
        let isExpected =
            if case .missingValue("process", missing.property, "fetch", missing.source) = error { true } else { false }
        #expect(isExpected, "\(error)")
        let text = "The operation “process” did not run, because “fetch” had no value \(missing.text)"
        #expect(error.localizedDescription == text)
        let converted = error as NSError
        #expect(converted.domain == DependencyError.errorDomain && converted.code == 3 && !error.isCancellation)
    }

    private class Greet: IOOperation<[String], Int>, @unchecked Sendable {
        var other: [String]?

        override func main(input: [String]) { finish(with: input.count) }
    }

    private final class GreetAll: Greet, @unchecked Sendable {}

    @Test("An input for which a binding had no value is an error that names both operations") func input() async {
        let (fetch, exact, macro) = (Fetch(finds: nil), GreetAll(), MacroOperation(Greet()))
        let greet = [Greet(), GreetAll(), IOBlockOperation<[String], Int> { $0.count }, macro]
        for operation in greet { operation.bind(\.input, to: fetch, \.found) }
        exact.bind(\.input, to: fetch, \.last.asList)
        let all = greet + [exact]
        for operation in all { operation.name = "greet" }
        await runAll(all + [fetch])
        for operation in all {
            let error = operation.error as? DependencyError
            if case .missingValue("greet", "input", "fetch", _) = error {} else { Issue.record("\(text(error))") }
        }
        #expect(
            greet[0].error?.localizedDescription
                == "The operation “greet” did not run, because “fetch” had no value in “found” for “input”.")
    }

    @Test("A binding without a value leaves the input as it is, whether that was given or comes from another binding")
    func inputThatIsThere() async {
        let (empty, full) = (Fetch(finds: nil), Fetch(finds: ["Ada", "Grace"]))
        let (given, earlier, later) = (Greet().with(input: ["Ada"]), Greet(), Greet())
        given.bind(\.input, to: empty, \.found)
        earlier.bind(\.input, to: full, \.found)
        earlier.bind(\.input, to: empty, \.found)
        later.bind(\.input, to: empty, \.found)
        later.bind(\.input, to: full, \.found)
        await runAll([given, earlier, later, empty, full])
        #expect(given.output == 1 && earlier.output == 2 && later.output == 2)
        #expect([given, earlier, later].allSatisfy { $0.error == nil })
    }

    @Test("A missing value for another property does not explain a missing input") func otherProperties() async {
        let (fetch, greet, set) = (Fetch(finds: nil), Greet(), Greet())
        greet.bind(\.other, to: fetch, \.found)
        set.bind(\.input, to: fetch, \.found)
        set.bind(to: fetch) { set, _ in set.input = ["Ada"] }
        await runAll([greet, set, fetch])
        #expect(greet.error as? IOOperationError == .missingInput(operation: "Greet") && set.output == 1)
    }
}

extension String? {
    fileprivate var asList: [String]? { map { [$0] } }
}
