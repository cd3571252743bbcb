import OperationKitTestSupport

/// What is written here is isolated to the main actor where it does not say otherwise: the settings of the target are those of
/// a new app. Most of what is tested is that it compiles.
@Suite("A module that is isolated to the main actor", .hangGuard) struct MainActorTests {
    @Test("A class of operations says nonisolated, and is used from the main actor") func subclass() async throws {
        let shopping = CompoundOperation(name: "Shopping", maxConcurrentOperationCount: 2)
        for item in ["Apples", "Bread", "Cheese"] {
            let purchase = Purchase()
            purchase.name = item
            try shopping.addOperation(purchase)
        }
        #expect(await outcome(of: shopping)?.suboperationErrors.map(\.name) == ["Cheese"])
    }

    @Test("Properties are bound, by key paths and by a closure") func bindings() async throws {
        let fetch = Fetch()
        let (byKeyPath, byClosure) = (Greet(), Greet())
        byKeyPath.bind(\.users, to: fetch, \.users)
        byClosure.bind(to: fetch) { greet, fetch in greet.users = fetch.users.map { $0.uppercased() } }
        let queue = OperationQueue()
        for operation in [fetch, byClosure] { queue.addOperation(operation) }
        try await queue.run(byKeyPath)
        try await byClosure.finished()
        #expect(byKeyPath.users == ["ada"] && byClosure.users == ["ADA"])
    }

    @Test("Compounds, macros, waterfalls and typed steps are built on the main actor") func composites() async throws {
        let measure = IOBlockOperation<String, Int> { $0.count }
        let macro = MacroOperation(measure).then(Double())
        macro.input = "four"
        #expect(try await OperationQueue().run(macro) == 8)
        let waterfall = Waterfall<Int, Int>().then { number in number + 1 }.then { number in "\(number)" }
        waterfall.input = 1
        #expect(try await OperationQueue().run(waterfall) == "2")
        let (log, model) = (EventLog(), Model())
        let compound = Import(log)
        try compound.addOperation(name: "closure") { log.add("closure") }
        try compound.addOperation(TaskOperation { await model.show("loaded") })
        try await OperationQueue().run(compound)
        #expect(Set(log.events) == ["prepared", "closure"] && model.text == "loaded")
    }

    private func run(_ form: Int, on queue: OperationQueue) async throws {
        let policy = RetryPolicy(maximumAttempts: 1)
        switch form {
        case 0: try await queue.run {}
        case 1: try await queue.run(TaskOperation { 1 })
        case 2: try await queue.run(BlockOperation {})
        case 3: try await queue.run([BlockOperation {}])
        case 4: try await queue.run(TaskOperation { 1 }, timeout: .seconds(100))
        case 5: try await queue.run(ThrowingBlockOperation {}, timeout: .seconds(100))
        case 6: try await queue.run(retry: policy) { 1 }
        default: try await queue.run(retry: policy) { _ in TaskOperation { 1 } }
        }
    }

    @Test("Calls of an actor come onto a queue in their order, in every form", arguments: 0..<8)
    func order(form: Int) async throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let queue = OperationQueue.serial(name: "requests")
        queue.isSuspended = true
        var tasks: [Task<Void, any Error>] = []
        for count in 1...3 {
            tasks.append(Task.immediate { try await run(form, on: queue) })
            #expect(queue.operationCount == count)
        }
        queue.isSuspended = false
        for task in tasks { try await task.value }
    }

    @Test("The sequence of a map is read on the main actor, to which its closures may belong", arguments: [1, 2])
    func sequences(limit: Int) async throws {
        let model = Model()
        func numbers() -> some Sequence<Int> {
            [1, 2, 3].lazy.map { number in
                model.show("\(number)")
                return number
            }
        }
        let queue = OperationQueue()
        #expect(try await queue.map(numbers(), limit: limit) { $0 + 1 } == [2, 3, 4])
        #expect(try await queue.mapToResults(numbers(), limit: limit) { $0 + 1 }.count == 3)
        #expect(model.text == "3")
    }

    @Test("The sequence of a collection operation whose method is asynchronous is read on the main actor")
    func longSequence() async throws {
        let words = sequence(first: "a") { word in
            MainActor.assertIsolated()
            return word.count < 3 ? word + "a" : nil
        }
        #expect(try await Lengths().performOperation(onEach: words).isEmpty)
    }

    /// Calls a body, which throws or not, and expects that the main actor goes on after it.
    private func goesOn(throwing isFailing: Bool = true, after body: () async throws -> Void) async {
        do {
            try await body()
            MainActor.assertIsolated()
            #expect(!isFailing, "Nothing was thrown")
        } catch {
            MainActor.assertIsolated()
            #expect(isFailing, "\(error)")
        }
    }

    @Test("The main actor goes on after what was awaited, with or without an error") func returns() async {
        let queue = OperationQueue()
        await goesOn(throwing: false) { try await queue.run([Purchase(), Purchase()]) }
        await goesOn { try await queue.run([TaskOperation { throw SoldOut() }, Purchase()]) }
        await goesOn(throwing: false) { try await queue.run { await Task.yield() } }
        await goesOn {
            try await queue.run {
                await Task.yield()
                MainActor.assertIsolated()
                throw SoldOut()
            }
        }
        for limit in [1, 2] {
            await goesOn { _ = try await queue.map([1, 2, 3], limit: limit) { if $0 == 2 { throw SoldOut() } } }
            await goesOn(throwing: false) { _ = try await queue.mapToResults([1, 2, 3], limit: limit) { $0 } }
        }
        await goesOn(throwing: false) {
            let errors = await Lengths().performOperation(on: ["a", ""])
            #expect(errors.map { $0 == nil } == [true, false])
        }
        await goesOn(throwing: false) { _ = try await Lengths().performOperation(onEach: ["a", ""]) }
        let words = AsyncThrowingStream<String, any Error> { stream in
            stream.yield("a")
            stream.finish(throwing: SoldOut())
        }
        await goesOn { _ = try await Lengths().performOperation(onEach: words) }
    }
}

@MainActor final class Model {
    private(set) var text = ""

    func show(_ text: String) { self.text = text }
}

struct SoldOut: Error {}

nonisolated final class Purchase: AsyncOperation, @unchecked Sendable {
    override func main() {
        DispatchQueue.global().async { [self] in
            finish(withError: name == "Cheese" ? SoldOut() : nil)
        }
    }
}

nonisolated final class Fetch: AsyncOperation, @unchecked Sendable {
    var users: [String] = []

    override func main() {
        users = ["ada"]
        finish()
    }
}

nonisolated final class Greet: AsyncOperation, @unchecked Sendable {
    var users: [String] = []
}

nonisolated final class Double: IOOperation<Int, Int>, @unchecked Sendable {
    override func main(input: Int) { finish(with: 2 * input) }
}

nonisolated final class Import: CompoundOperation, @unchecked Sendable {
    private let log: EventLog

    init(_ log: EventLog) {
        self.log = log
        super.init(name: "Import")
    }

    override func prepare() throws {
        try addOperation(BlockOperation { [log] in log.add("prepared") })
    }
}

nonisolated final class Lengths: AsyncItemOperation, ParallelItemOperation {
    func performOperation(onItem item: String) async throws {
        if item.isEmpty { throw SoldOut() }
    }
}
