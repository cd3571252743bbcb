import OperationKitTestSupport

@testable import OperationKit

@Suite("Which observers an operation has", .hangGuard) struct ObserverListTests {

    private static func happens(_ operation: AsyncOperation) {
        operation.emit(.waiting(for: "test"))
    }

    // MARK: - Programs

    /// Operations that are put together at random, and what is known of them without the library.
    private struct Program {
        var random: SplitMix64
        var composites: [CompoundOperation] = []
        var operations: [AsyncOperation] = []
        /// The place of the composite that an operation is part of.
        var parents: [Int?] = []
        var observers: [[EventRecorder]] = []
        var places: [ObjectIdentifier: Int] = [:]

        mutating func add(_ operation: AsyncOperation) {
            places[ObjectIdentifier(operation)] = operations.count
            operations.append(operation)
            parents.append(nil)
            observers.append([])
            if let compound = operation as? CompoundOperation { composites.append(compound) }
        }

        /// A place and all that it is inside of.
        func path(_ place: Int) -> [Int] { Array(sequence(first: place) { parents[$0] }) }

        mutating func step() throws {
            let place = Int.random(in: operations.indices, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: add(Bool.random(using: &random) ? CompoundOperation() : AsyncOperation())
            case 1, 2:
                let composite = composites.randomElement(using: &random) ?? composites[0]
                guard let outer = places[ObjectIdentifier(composite)], parents[place] == nil else { return }
                if path(outer).contains(place) { return }
                parents[place] = outer
                try composite.addOperation(operations[place])
            case 3:
                let observer = EventRecorder()
                observers[place].append(observer)
                operations[place].addObserver(observer)
            case 4:
                guard let observer = observers[place].randomElement(using: &random) else { return }
                observers[place].removeAll { $0 === observer }
                operations[place].removeObserver(observer)
            default: happens(operations[place])
            }
        }

        /// Whether an event of each operation comes to the observers of what is around it, and to no others.
        func check(_ seed: UInt64) {
            for place in operations.indices {
                let before = observers.joined().map(\.events.count)
                happens(operations[place])
                let seen = zip(observers.joined(), before).filter { $0.events.count != $1 }.map {
                    ObjectIdentifier($0.0)
                }
                let expected = path(place).flatMap { observers[$0] }.map { ObjectIdentifier($0) }
                #expect(Set(seen) == Set(expected), "seed \(seed)")
            }
        }
    }

    @Test("Operations that are put together in any order are seen by the observers of what is around them")
    func programs() throws {
        for _ in 0..<TestExtent.choose(50, long: 2_000) {
            let seed = SplitMix64.freshSeed()
            var program = Program(random: SplitMix64(seed: seed))
            program.add(CompoundOperation())
            for _ in 0..<60 { try program.step() }
            program.check(seed)
        }
    }

    // MARK: - Threads

    @Test(
        "An observer sees what happens after it was added, and nothing after it was removed, whatever other threads add"
    )
    func threads() async {
        let composites = (0..<6).map { CompoundOperation(name: "\($0)") }
        for (outer, inner) in zip(composites, composites.dropFirst()) {
            #expect(throws: Never.self) { try outer.addOperation(inner) }
        }
        let bodies = (0..<4).map { number in
            { @Sendable in
                var random = SplitMix64(seed: UInt64(number))
                for _ in 0..<TestExtent.choose(300, long: 20_000) {
                    // A composite in which something has happened before it is put somewhere.
                    let operation = AsyncOperation()
                    let small = CompoundOperation(operations: [operation])
                    Self.happens(operation)
                    let depth = Int.random(in: composites.indices, using: &random)
                    let observer = EventRecorder()
                    let observed = composites[Int.random(in: 0...depth, using: &random)]
                    observed.addObserver(observer)
                    do { try composites[depth].addOperation(small) } catch { Issue.record(error) }
                    let before = observer.events.count
                    Self.happens(operation)
                    // Others add operations, too.
                    #expect(observer.events.count > before)
                    observed.removeObserver(observer)
                    let own = EventRecorder()
                    small.addObserver(own)
                    Self.happens(operation)
                    #expect(own.events.count == 1)
                    small.removeObserver(own)
                    Self.happens(operation)
                    #expect(own.events.count == 1)
                }
            }
        }
        await concurrently(bodies)
    }

    @Test("What happens to an operation is noted for its own observers, also if the first of all was just added")
    func firstObserver() {
        let observer = ObserverRegistration(EventRecorder(), isOuter: false)
        var state = AsyncOperation.State(lifecycle: Lifecycle(ending: .immediately))
        #expect(state.note(.started, nil) == nil)
        state.requiredEventQueue().observers.add(observer)
        #expect(state.note(.started, nil) === state.eventQueue)
    }

    private final class Leaf: Sendable {
        let operation = ScriptedOperation.idle()
        let observer = EventRecorder()
        let wasAdded = Shared(false)
    }

    @Test("An observer that is added to a composite before an operation inside ends is told of the end")
    func addedBeforeTheEnd() async throws {
        // So many that looking at what is around an operation takes a while.
        let composites = (0..<300).map { CompoundOperation(name: "\($0)") }
        for (outer, inner) in zip(composites, composites.dropFirst()) { try outer.addOperation(inner) }
        composites[0].addObserver(EventRecorder())
        let seed = SplitMix64.freshSeed()
        let prepare: @Sendable (Int) -> Leaf = { _ in
            let leaf = Leaf()
            #expect(throws: Never.self) { try composites[299].addOperation(leaf.operation) }
            leaf.operation.start()
            return leaf
        }
        let bodies: [@Sendable (Leaf) -> Void] = [
            { $0.operation.finish() },
            { leaf in
                composites[299].addObserver(leaf.observer)
                leaf.wasAdded.value = !leaf.operation.isFinished
            },
        ]
        await race(rounds: 600, seed: seed, prepare: prepare, bodies) { leaf, round in
            #expect(!leaf.wasAdded.value || leaf.observer.events.count == 1, "round \(round), seed \(seed)")
            composites[299].removeObserver(leaf.observer)
        }
    }
}
