import OperationKitTestSupport

@Suite("Bindings of optional values", .hangGuard) struct OptionalBindingTests {
    private final class Search: AsyncOperation, @unchecked Sendable {
        private(set) var found: [String]?
        private(set) var note: String?
        var last: String? { found?.last }

        init(_ found: [String]? = nil) {
            self.found = found
            super.init()
            name = "search"
        }

        override func main() { elsewhere { self.finish() } }
    }

    private final class Show: AsyncOperation, @unchecked Sendable {
        var names: [String] = []
        var title = "none"
        var subtitle: String? = "none"
        var heading: String {
            get { title }
            set { title = newValue }
        }
        let log = EventLog()

        override init() {
            super.init()
            name = "show"
        }

        override func main() {
            log.add("main \(names) \(title)")
            finish()
        }
    }

    private final class PlainSearch: Operation, @unchecked Sendable {
        let note: String? = nil
    }

    @Test("The value of an optional property is handed to one that takes no `nil`, and `nil` to one that does")
    func value() async {
        let (fetch, search, empty, show) = (TaskOperation { ["Ada"] }, Search(["Grace"]), Search(), Show())
        show.bind(\.names, to: fetch, \.output)
        show.bind(\.title, to: search, \.last)
        show.bind(\.subtitle, to: empty, \.last)
        await runAll([show, fetch, search, empty])
        #expect(show.log.events == ["main [\"Ada\"] Grace"] && show.subtitle == nil && show.error == nil)
    }

    /// A binding whose source has no value, and what the error says then.
    private struct Missing: CustomTestStringConvertible, Sendable {
        let property: String?
        let dependencyProperty: String?
        let testDescription: String
        let bind: @Sendable (_ target: Show, _ source: Search, _ plainSource: PlainSearch) -> Void

        init(
            _ property: String?, _ dependencyProperty: String?, _ text: String,
            _ bind: @escaping @Sendable (_ target: Show, _ source: Search, _ plainSource: PlainSearch) -> Void
        ) {
            (self.property, self.dependencyProperty, testDescription) = (property, dependencyProperty, text)
            self.bind = bind
        }
    }

    private static let missing = [
        Missing("names", "found", "in “found” for “names”.") { show, search, _ in
            show.bind(\.names, to: search, \.found)
        },
        Missing("title", nil, "for “title”.") { show, search, _ in show.bind(\.title, to: search, \.last) },
        Missing(nil, "note", "in “note” for it.") { show, search, _ in show.bind(\.heading, to: search, \.note) },
        Missing(nil, nil, "for it.") { show, search, _ in show.bind(\.heading, to: search, \.last) },
        Missing("title", "note", "in “note” for “title”.") { show, _, plain in
            show.bind(\.title, to: plain, \.note)
        },
    ]

    @Test("A missing value ends the target with an error that names what is known of it", arguments: missing)
    private func missingValue(_ missing: Missing) async throws {
        let (search, plain, show) = (Search(), PlainSearch(), Show())
        plain.name = "search"
        missing.bind(show, search, plain)
        await runAll([show, search, plain])
        #expect(show.log.events.isEmpty && show.names.isEmpty && search.error == nil)
        let error = try #require(show.error as? DependencyError)
        guard case .missingValue("show", let property, "search", let dependencyProperty) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(property == missing.property && dependencyProperty == missing.dependencyProperty)
        let text = "The operation “show” did not run, because “search” had no value "
        #expect(error.localizedDescription == text + missing.testDescription)
        let converted = error as NSError
        #expect(converted.domain == DependencyError.errorDomain && converted.code == 3 && !error.isCancellation)
    }

    private class Greet: IOOperation<[String], Int>, @unchecked Sendable {
        var other: [String]?

        override func main(input: [String]) { finish(with: input.count) }
    }

    private final class GreetAll: Greet, @unchecked Sendable {
        var stored: [String]?
        var computed: [String]? {
            get { stored }
            set { stored = newValue }
        }
    }

    @Test("An input for which a binding had no value is an error that names both operations") func input() async {
        let search = Search()
        let greet = [Greet(), GreetAll(), IOBlockOperation<[String], Int> { $0.count }]
        for operation in greet {
            operation.name = "greet"
            operation.bind(\.input, to: search, \.found)
        }
        let exact = GreetAll()
        exact.name = "greet"
        exact.bind(\.input, to: search, \.last.asList)
        let macro = MacroOperation(Greet())
        macro.name = "greet"
        macro.bind(\.input, to: search, \.found)
        let all = greet + [exact, macro]
        await runAll(all + [search])
        for operation in all {
            guard case .missingValue("greet", "input", "search", _) = operation.error as? DependencyError else {
                Issue.record("\(text(operation.error))")
                continue
            }
        }
        #expect(
            greet[0].error?.localizedDescription
                == "The operation “greet” did not run, because “search” had no value in “found” for “input”.")
    }

    @Test("A binding without a value leaves the input as it is, whether that was given or comes from another binding")
    func inputThatIsThere() async {
        let (empty, full) = (Search(), Search(["Ada", "Grace"]))
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

    @Test("A missing value for another property does not explain a missing input, which another binding may set")
    func otherProperties() async {
        let (search, greet, greetAll, set) = (Search(), Greet(), GreetAll(), Greet())
        greet.bind(\.other, to: search, \.found)
        greetAll.bind(\.stored, to: search, \.found)
        greetAll.bind(\.computed, to: search, \.found)
        set.bind(\.input, to: search, \.found)
        set.bind(to: search) { set, _ in set.input = ["Ada"] }
        await runAll([greet, greetAll, set, search])
        #expect(greet.error as? IOOperationError == .missingInput(operation: "Greet"))
        #expect(greetAll.error as? IOOperationError == .missingInput(operation: "GreetAll") && set.output == 1)
    }
}

extension String? {
    fileprivate var asList: [String]? { map { [$0] } }
}
