import OperationKitTestSupport

@testable import OperationKit

@Suite("ResourceStateMachine") struct ResourceStateMachineTests {
    private struct Desk {
        var machine = ResourceStateMachine()
        var ids: [String: RequestID] = [:]
        var granted: [String] = []

        mutating func resource(_ limit: Int = 1, maximumWaiting: Int = .max, isRate: Bool = false) -> ResourceID {
            machine.resourceAdded(limit: limit, maximumWaiting: maximumWaiting, isRate: isRate)
        }

        @discardableResult
        mutating func request(
            _ name: String, _ resources: ResourceID..., priority: Int = 0, isComposite: Bool = false,
            inside: String? = nil
        ) -> ResourceStateMachine.Answer {
            let answer = machine.requested(
                resources, priority: priority, isComposite: isComposite, inside: inside.flatMap { ids[$0] })
            switch answer {
            case .granted(let id):
                granted.append(name)
                ids[name] = id
            case .waiting(let id): ids[name] = id
            case .tooManyWaiting, .refused: break
            }
            return answer
        }

        mutating func end(_ name: String, givesBackPermits: Bool = false) {
            guard let id = ids.removeValue(forKey: name) else { return }
            note(machine.ended(id, givesBackPermits: givesBackPermits))
        }

        mutating func enclose(_ name: String, by holder: String) -> ResourceStateMachine.Refusal? {
            guard let id = ids[name], let holder = ids[holder] else { return nil }
            let (refusal, others) = machine.enclosed(id, by: holder)
            note(others)
            return refusal
        }

        mutating func note(_ requests: [RequestID]) {
            granted += requests.compactMap { id in ids.first { $0.value == id }?.key }
        }
    }

    private var desk = Desk()

    @Test("No request waits for what is gone, and it grants nothing") mutating func gone() throws {
        let (rate, place) = (desk.resource(isRate: true), desk.resource())
        desk.request("a", place, isComposite: true)
        let request = try #require(desk.ids["a"])
        #expect(desk.machine.holdsSomething(request) && desk.machine.missing(for: request, holdersAtMost: 1) == nil)
        #expect(desk.machine.holdingCompositeCount == 1)
        desk.end("a")
        #expect(!desk.machine.holdsSomething(request) && desk.machine.missing(for: request, holdersAtMost: 1) == nil)
        desk.request("leaf", place)
        desk.request("waiting", place)
        let (leaf, waiting) = (try #require(desk.ids["leaf"]), try #require(desk.ids["waiting"]))
        #expect(desk.machine.missing(for: waiting, holdersAtMost: 2)?.map(\.holders) == [[leaf]])
        desk.end("leaf")
        #expect(desk.machine.holdingCompositeCount == 0)
        desk.machine.resourceRemoved(rate)
        #expect(desk.machine.permitsReturned(1, of: rate).isEmpty && desk.machine.waitingCount(of: rate) == 0)
    }

    @Test("A request keeps its place in all lines, and takes none before it gets all") mutating func together() {
        let (a, b) = (desk.resource(), desk.resource())
        desk.request("holder", a)
        desk.request("both", a, b)
        desk.request("later", b)
        #expect(desk.granted == ["holder"])
        desk.end("holder")
        #expect(desk.granted == ["holder", "both"])
        desk.end("both")
        #expect(desk.granted == ["holder", "both", "later"])
    }

    @Test("Requests from inside come before others, and hold up these, but not each other") mutating func inside() {
        let (a, b, c) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", a, isComposite: true)
        desk.request("user of b", b)
        desk.request("user of c", c)
        desk.request("outside", b)
        desk.request("both", b, c, inside: "sync")
        desk.request("single", b, inside: "sync")
        desk.end("user of b")
        // The first one from inside lacks the other resource, and does not hold up the second one.
        #expect(desk.granted == ["sync", "user of b", "user of c", "single"])
        desk.end("single")
        // But it does hold up the one from outside.
        #expect(desk.granted.count == 4)
        desk.end("user of c")
        #expect(desk.granted.last == "both")
        desk.end("both")
        #expect(desk.granted.last == "outside")
    }

    @Test("Of requests from inside that a release could serve, the first one gets it") mutating func insideOrder() {
        let (a, b, c) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", a, isComposite: true)
        desk.request("user", b, c)
        desk.request("both", c, b, priority: 1, inside: "sync")
        desk.request("single", b, inside: "sync")
        desk.end("user")
        #expect(desk.granted.last == "both")
    }

    @Test("A request behind one from inside is granted with it, given a place") mutating func outsideBehindInside() {
        let (a, b, c) = (desk.resource(), desk.resource(2), desk.resource())
        desk.request("sync", c, isComposite: true)
        desk.request("user", a)
        desk.request("both", a, b, inside: "sync")
        desk.request("outside", b)
        #expect(desk.granted == ["sync", "user"])
        desk.end("user")
        #expect(desk.granted == ["sync", "user", "both", "outside"])
    }

    @Test("A request moves when it comes inside, or is refused what is held there") mutating func enclosed() {
        let (a, b) = (desk.resource(2), desk.resource())
        desk.request("sync", a, isComposite: true)
        desk.request("user", b)
        desk.request("outside", b)
        desk.request("late", b)
        desk.request("ring", a, b)
        #expect(desk.enclose("late", by: "sync") == nil)
        #expect(desk.enclose("ring", by: "sync")?.resource == a)
        #expect(desk.machine.waitingCount(of: b) == 2 && desk.machine.waitingCount(of: a) == 0)
        desk.end("user")
        #expect(desk.granted.last == "late")
        // Whatever the limit, and at any depth.
        desk.request("inner", desk.resource(), isComposite: true, inside: "sync")
        let refusal = desk.ids["sync"].map { ResourceStateMachine.Answer.refused(.init(resource: a, holder: $0)) }
        #expect(desk.request("child", a, inside: "inner") == refusal)
        // Also if it came inside after its grant.
        desk.request("guest", desk.resource(), isComposite: true)
        #expect(desk.enclose("guest", by: "sync") == nil)
        #expect(desk.request("child", a, inside: "guest") == refusal)
    }

    @Test("Where no request may wait, one may for another resource while there is a place") mutating func noRoom() {
        let (a, b, c) = (desk.resource(maximumWaiting: 0), desk.resource(), desk.resource())
        desk.request("sync", c, isComposite: true)
        desk.request("user", b)
        desk.request("both", a, b)
        #expect(desk.ids["both"] != nil)
        #expect(desk.request("late", a, b) == .tooManyWaiting(a))
        desk.request("inside", a, inside: "sync")
        #expect(desk.granted.last == "inside")
        desk.end("both")
        #expect(desk.request("another", a) == .tooManyWaiting(a))
    }

    @Test("Places of a rate limit come back with time, or with a request that did not use them") mutating func rates() {
        let rate = desk.resource(1, isRate: true)
        desk.request("first", rate)
        desk.request("second", rate)
        desk.end("first")
        #expect(desk.granted == ["first"])
        desk.note(desk.machine.permitsReturned(5, of: rate))
        #expect(desk.granted == ["first", "second"])
        desk.request("third", rate)
        desk.end("second", givesBackPermits: true)
        #expect(desk.granted.last == "third")
        // A permit is used by one request, and no place that others inside wait for.
        let others = desk.resource(2, isRate: true)
        desk.request("whole", others, isComposite: true)
        desk.request("part", others, inside: "whole")
        #expect(desk.granted.last == "part" && desk.ids["whole"].map { desk.machine.holdsSomething($0) } == false)
    }
}

@Suite("RatePermits") struct RatePermitsTests {
    @Test("A return is reported once more if the use came after its deadline had been armed") func armedBefore() {
        var permits = RatePermits(per: .seconds(10))
        #expect(permits.willBeUsed(at: .seconds(1)) == .seconds(11))
        #expect(permits.willBeUsed(at: .seconds(2)) == nil)
        #expect(permits.used(at: .seconds(3)) == nil)
        #expect(permits.returned(at: .seconds(11)) == (0, .seconds(13)))
        #expect(permits.returned(at: .seconds(13)) == (1, nil))
        #expect(permits.willBeUsed(at: .seconds(20)) == .seconds(30))
        #expect(permits.returned(at: .seconds(30)) == (0, nil))
        // A use that is reported late counts as the last one.
        #expect(permits.used(at: .seconds(31)) == .seconds(41) && permits.used(at: .seconds(29)) == nil)
        #expect(permits.returned(at: .seconds(41)) == (2, nil))
    }

    @Test("In no time of that length there are more uses than permits", arguments: 1...10 as ClosedRange<UInt64>)
    func everyWindow(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var permits = RatePermits(per: .seconds(10))
        var free = 3
        var wake: Duration?
        var uses: [Duration] = []
        for second in 0..<500 as Range<Int64> {
            let now = Duration.seconds(second)
            if let due = wake, due <= now {
                let (count, next) = permits.returned(at: now)
                free += count
                wake = next
            }
            for _ in 0..<random.next() % 3 where free > 0 {
                free -= 1
                uses.append(now)
                if let due = permits.used(at: now) { wake = due }
            }
            #expect(uses.count { $0 > now - .seconds(10) } == 3 - free)
        }
        #expect(uses.count > 100)
    }
}
