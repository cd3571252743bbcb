import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("ResourceStateMachine") struct ResourceStateMachineTests {
    @Test("Requests for one resource are granted one after the other, in the order of their arrival") func order() {
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
        let host = desk.resource(2)
        for owner in ["a", "b", "c", "d"] { desk.request(owner, host) }
        #expect(desk.granted == ["a", "b"])
        #expect(desk.holders(of: host) == ["a", "b"])
        desk.end("b")
        #expect(desk.granted == ["a", "b", "c"])
    }

    @Test("Several resources are taken together, and none is held while another one is missing") func together() {
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
        let disk = desk.resource()
        desk.request("nothing")
        desk.request("copy", disk, disk)
        #expect(desk.granted == ["nothing", "copy"])
        desk.end("copy")
        desk.request("load", disk)
        #expect(desk.granted == ["nothing", "copy", "load"])
    }

    @Test("Beyond the maximum that may wait, a request is rejected, and one that need not wait is not") func maximum() {
        var desk = ResourceDesk()
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

    @Test("A resource that is free, and that none waits for, has no maximum that may wait") func maximumOfFree() {
        var desk = ResourceDesk()
        let (host, other) = (desk.resource(), desk.resource(1, maximumWaiting: 0))
        desk.request("a", host)
        desk.request("b", host, other)
        desk.end("a")
        #expect(desk.granted == ["a", "b"])
    }

    @Test("Places of a rate limit come back with the time, or if they were not used") func rate() {
        var desk = ResourceDesk()
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
            case .granted(let id), .waiting(let id, _): ids.append(id)
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
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
        let (disk, network) = (desk.resource(), desk.resource())
        desk.request("left", disk)
        desk.request("right", network)
        desk.request("left child", network, inside: "left")
        #expect(
            desk.cycle("right child", disk, inside: "right") == ["right child needs left", "left child needs right"])
        desk.end("right")
        #expect(desk.granted == ["left", "right", "left child"])
    }

    @Test("With more places than one, a cycle is no error, and diagnostics find it") func severalPlaces() {
        var desk = ResourceDesk()
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
        var desk = ResourceDesk()
        let rate = desk.resource(1, isRate: true)
        desk.request("first", rate)
        desk.end("first")
        desk.request("second", rate)
        #expect(desk.granted == ["first"])
        #expect(desk.deadlocked.isEmpty)
    }
}
