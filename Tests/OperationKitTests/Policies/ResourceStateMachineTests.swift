import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("ResourceStateMachine") struct ResourceStateMachineTests {
    /// A machine whose requests have names, and that writes down which are granted.
    private struct Desk {
        var machine = ResourceStateMachine()
        var granted: [String] = []
        var ids: [String: RequestID] = [:]

        mutating func resource(_ limit: Int = 1, maximumWaiting: Int = .max, isRate: Bool = false) -> ResourceID {
            machine.resourceAdded(limit: limit, maximumWaiting: maximumWaiting, isRate: isRate)
        }

        @discardableResult
        mutating func request(
            _ name: String, _ resources: ResourceID..., priority: Int = 0, inside: String...
        ) -> ResourceStateMachine.Answer {
            let answer = machine.requested(resources, priority: priority, inside: inside.compactMap { ids[$0] })
            switch answer {
            case .granted(let id):
                granted.append(name)
                ids[name] = id
            case .waiting(let id):
                ids[name] = id
            case .tooManyWaiting, .cycle:
                break
            }
            return answer
        }

        /// The waits of a request that is rejected because of a cycle.
        mutating func cycle(
            _ name: String, _ resources: ResourceID..., priority: Int = 0, inside: String...
        ) -> [String]? {
            let answer = machine.requested(resources, priority: priority, inside: inside.compactMap { ids[$0] })
            guard case .cycle(let waits) = answer else { return nil }
            return waits.map {
                let (waiting, blocker) = (self.name(of: $0.request) ?? name, self.name(of: $0.blocker) ?? name)
                return "\(waiting) \($0.isHeld ? "needs" : "follows") \(blocker)"
            }
        }

        func name(of id: RequestID) -> String? {
            ids.first { $0.value == id }?.key
        }

        mutating func end(_ name: String, givesBackPermits: Bool = false) {
            guard let id = ids[name] else { return }
            granted += machine.ended(id, givesBackPermits: givesBackPermits).compactMap { self.name(of: $0) }
        }

        func holders(of resource: ResourceID) -> [String] {
            machine.holders(of: resource).compactMap { name(of: $0) }.sorted()
        }

        var deadlocked: [String] { machine.deadlockedRequests().compactMap { name(of: $0) }.sorted() }
    }

    @Test("Requests for one resource are granted one after the other, in the order of their arrival") func order() {
        var desk = Desk()
        let disk = desk.resource()
        for owner in ["a", "b", "c"] { desk.request(owner, disk) }
        #expect(desk.granted == ["a"])
        #expect(desk.machine.waitingCount(of: disk) == 2)
        desk.end("a")
        #expect(desk.granted == ["a", "b"])
        desk.end("b")
        desk.end("c")
        #expect(desk.granted == ["a", "b", "c"])
        #expect(desk.holders(of: disk).isEmpty)
    }

    @Test("A request with a higher priority comes before those that wait") func priority() {
        var desk = Desk()
        let disk = desk.resource()
        desk.request("held", disk)
        desk.request("low", disk, priority: -4)
        desk.request("normal", disk)
        desk.request("high", disk, priority: 4)
        desk.request("also high", disk, priority: 4)
        for owner in ["held", "high", "also high", "normal", "low"] { desk.end(owner) }
        #expect(desk.granted == ["held", "high", "also high", "normal", "low"])
    }

    @Test("As many requests are granted as there are places") func places() {
        var desk = Desk()
        let host = desk.resource(2)
        for owner in ["a", "b", "c", "d"] { desk.request(owner, host) }
        #expect(desk.granted == ["a", "b"])
        #expect(desk.holders(of: host) == ["a", "b"])
        desk.end("b")
        #expect(desk.granted == ["a", "b", "c"])
    }

    @Test("Several resources are taken together, and none is held while another one is missing") func together() {
        var desk = Desk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("copy", disk)
        desk.request("backup", disk, network)
        #expect(desk.holders(of: network).isEmpty)
        #expect(desk.ids["backup"].map { desk.machine.missingResources(of: $0) } == [disk])
        desk.end("copy")
        #expect(desk.granted == ["copy", "backup"])
        #expect(desk.holders(of: network) == ["backup"])
        #expect(desk.ids["backup"].map { desk.machine.missingResources(of: $0) } == [])
    }

    @Test("A request does not overtake one that waits for another resource, too, where both need the same")
    func noOvertaking() {
        var desk = Desk()
        let (disk, network, screen) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("copy", disk)
        desk.request("backup", disk, network)
        desk.request("load", network)
        desk.request("show", screen)
        #expect(desk.granted == ["copy", "show"])
        #expect(desk.ids["load"].map { desk.machine.missingResources(of: $0) } == [network])
        desk.request("urgent", network, priority: 1)
        #expect(desk.granted == ["copy", "show", "urgent"])
        desk.end("urgent")
        #expect(desk.granted == ["copy", "show", "urgent"])
        desk.end("copy")
        desk.end("backup")
        #expect(desk.granted == ["copy", "show", "urgent", "backup", "load"])
    }

    @Test("A request that is withdrawn makes way for those behind it") func withdrawn() {
        var desk = Desk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("copy", disk)
        desk.request("backup", disk, network)
        desk.request("load", network)
        desk.end("backup")
        #expect(desk.granted == ["copy", "load"])
        desk.end("backup")
        desk.end("copy")
        #expect(desk.granted == ["copy", "load"])
        #expect(desk.machine.requests.count == 1)
    }

    @Test("A resource that is required twice counts once, and no resource is granted immediately") func duplicates() {
        var desk = Desk()
        let disk = desk.resource()
        desk.request("nothing")
        desk.request("copy", disk, disk)
        #expect(desk.granted == ["nothing", "copy"])
        desk.end("copy")
        desk.request("load", disk)
        #expect(desk.granted == ["nothing", "copy", "load"])
    }

    @Test("Beyond the maximum that may wait, a request is rejected, and one that need not wait is not") func maximum() {
        var desk = Desk()
        let (host, other) = (desk.resource(2, maximumWaiting: 1), desk.resource(1, maximumWaiting: 0))
        for owner in ["a", "b", "c"] { desk.request(owner, host, other) }
        for owner in ["d", "e"] { desk.request(owner, host) }
        #expect(desk.granted == ["a", "d"])
        #expect(desk.ids.keys.sorted() == ["a", "d", "e"])
        guard case .tooManyWaiting(host) = desk.request("f", host),
            case .tooManyWaiting(other) = desk.request("g", other)
        else {
            Issue.record("not rejected")
            return
        }
        desk.end("a")
        #expect(desk.granted == ["a", "d", "e"])
    }

    @Test("Places of a rate limit come back with the time, or if they were not used") func rate() {
        var desk = Desk()
        let rate = desk.resource(2, isRate: true)
        for owner in ["a", "b", "c", "d"] { desk.request(owner, rate) }
        #expect(desk.granted == ["a", "b"])
        desk.end("a")
        #expect(desk.granted == ["a", "b"])
        desk.end("b", givesBackPermits: true)
        #expect(desk.granted == ["a", "b", "c"])
        desk.granted += desk.machine.permitsReturned(2, of: rate).compactMap { desk.name(of: $0) }
        #expect(desk.granted == ["a", "b", "c", "d"])
        desk.machine.resourceRemoved(rate)
        #expect(desk.machine.permitsReturned(1, of: rate).isEmpty)
    }

    @Test("Very many requests wait for one resource, are withdrawn and granted in time") func scale() {
        var machine = ResourceStateMachine()
        let disk = machine.resourceAdded(limit: 1)
        var ids: [RequestID] = []
        let count = TestExtent.choose(10_000, long: 100_000)
        for number in 0..<count {
            switch machine.requested([disk], priority: number % 5) {
            case .granted(let id), .waiting(let id): ids.append(id)
            case .tooManyWaiting, .cycle: Issue.record("rejected")
            }
        }
        for id in ids[count / 2..<count] { #expect(machine.ended(id).isEmpty) }
        var next: RequestID? = ids[0]
        var granted = 1
        while let id = next {
            next = machine.ended(id).first
            granted += next == nil ? 0 : 1
        }
        #expect(granted == count / 2)
        #expect(machine.requests.isEmpty)
    }

    // MARK: - Cycles

    @Test("A request for what an operation around it holds is a cycle") func around() {
        var desk = Desk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("outer", disk)
        desk.request("inner", network, inside: "outer")
        #expect(desk.cycle("innermost", disk, inside: "inner", "outer") == ["innermost needs outer"])
        #expect(desk.machine.waitingCount(of: disk) == 0)
        #expect(desk.machine.blockedHolderCount == 0)
        desk.end("inner")
        desk.end("outer")
        #expect(desk.granted == ["outer", "inner"])
    }

    @Test("Two operations whose children need what the other one holds are a cycle") func crossed() {
        var desk = Desk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("left", disk)
        desk.request("right", network)
        desk.request("left child", network, inside: "left")
        #expect(
            desk.cycle("right child", disk, inside: "right") == ["right child needs left", "left child needs right"])
        desk.end("right")
        #expect(desk.granted == ["left", "right", "left child"])
    }

    @Test("Waiting behind one that waits for what is around the request is a cycle") func behind() {
        var desk = Desk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("outer", disk)
        desk.request("load", network)
        desk.request("backup", disk, network)
        #expect(desk.cycle("inner", network, inside: "outer") == ["inner follows backup", "backup needs outer"])
        desk.end("load")
        #expect(desk.granted == ["outer", "load"])
        desk.request("urgent", network, priority: 1, inside: "outer")
        #expect(desk.granted == ["outer", "load", "urgent"])
    }

    @Test("A request that comes before one inside the operation that it waits for is a cycle") func before() {
        var desk = Desk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("outer", disk)
        desk.request("load", network)
        desk.request("inner", network, inside: "outer")
        desk.request("backup", disk, network)
        #expect(
            desk.cycle("urgent backup", disk, network, priority: 1) == [
                "urgent backup needs outer", "inner follows urgent backup",
            ])
        desk.end("load")
        #expect(desk.granted == ["outer", "load", "inner"])
    }

    @Test("With more places than one, a cycle is no error, and diagnostics find it") func severalPlaces() {
        var desk = Desk()
        let host = desk.resource(2)
        desk.request("left", host)
        desk.request("right", host)
        desk.request("left child", host, inside: "left")
        #expect(desk.deadlocked.isEmpty)
        desk.request("right child", host, inside: "right")
        desk.request("other", host)
        #expect(desk.deadlocked == ["left", "left child", "other", "right", "right child"])
        desk.end("right child")
        #expect(desk.deadlocked.isEmpty)
    }

    @Test("Requests that only wait for time are not deadlocked") func rateIsNoDeadlock() {
        var desk = Desk()
        let rate = desk.resource(1, isRate: true)
        desk.request("first", rate)
        desk.end("first")
        desk.request("second", rate)
        #expect(desk.granted == ["first"])
        #expect(desk.deadlocked.isEmpty)
    }
}
