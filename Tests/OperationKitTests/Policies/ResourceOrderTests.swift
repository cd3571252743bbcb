import OperationKitTestSupport
import Testing

@testable import OperationKit

@Suite("The order of requests inside operations") struct ResourceOrderTests {
    @Test("A request inside an operation comes before one that waits for what the operation holds") func inside() {
        var desk = ResourceDesk()
        let (database, host) = (desk.resource(), desk.resource(4))
        desk.request("sync", database)
        desk.request("export", database, host)
        desk.request("other", host)
        desk.request("load", host, inside: "sync")
        #expect(desk.granted == ["sync", "load"])
        desk.end("load")
        desk.end("sync")
        #expect(desk.granted == ["sync", "load", "export", "other"])
    }

    @Test("It comes before those that are behind such a one because of another resource") func indirectly() {
        var desk = ResourceDesk()
        let (database, disk, host) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", database)
        desk.request("export", database, disk)
        desk.request("copy", disk, host)
        #expect(desk.granted == ["sync"])
        desk.request("load", host, inside: "sync")
        #expect(desk.granted == ["sync", "load"])
    }

    @Test("Those inside operations come in their order, and not before others that need not wait for these")
    func orderInside() {
        var desk = ResourceDesk()
        let (database, disk, host) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", database)
        desk.request("held", host, disk)
        desk.request("urgent", host, disk, priority: 1)
        desk.request("early", host)
        desk.request("export", database, host)
        desk.request("first", host, inside: "sync")
        desk.request("second", host, inside: "sync")
        for name in ["held", "urgent", "early", "first", "second", "sync", "export"] { desk.end(name) }
        #expect(desk.granted == ["sync", "held", "urgent", "early", "first", "second", "export"])
    }

    @Test(
        "One with a higher priority, which waits for what an operation holds, lets those inside the operation come first"
    )
    func priority() {
        var desk = ResourceDesk()
        let (database, host, other) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", database)
        desk.request("held", other)
        desk.request("load", host, other, inside: "sync")
        desk.request("urgent", database, host, priority: 1)
        desk.end("held")
        #expect(desk.granted == ["sync", "held", "load"])
        desk.end("load")
        desk.end("sync")
        #expect(desk.granted == ["sync", "held", "load", "urgent"])
    }

    @Test("Those that come first because of a new request are granted if they can be") func grantedOthers() {
        var desk = ResourceDesk()
        let (database, host, other) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", database)
        desk.request("held", other)
        desk.request("copy", host, other)
        desk.request("load", host, inside: "sync")
        #expect(desk.granted == ["sync", "held"])
        desk.request("urgent", database, priority: 1)
        #expect(desk.granted == ["sync", "held", "load"])
    }

    @Test("Those inside what waits inside an operation come first, too") func nested() {
        var desk = ResourceDesk()
        let (database, disk, host, held) = (desk.resource(), desk.resource(), desk.resource(), desk.resource())
        desk.request("held", held)
        desk.request("sync", database)
        desk.request("import", disk)
        desk.request("copy", host, held)
        desk.request("read", host, inside: "import")
        desk.request("load", disk, inside: "sync")
        #expect(desk.granted == ["held", "sync", "import"])
        desk.request("urgent", database, priority: 1)
        #expect(desk.granted == ["held", "sync", "import", "read"])
        for name in ["read", "import", "load", "sync", "urgent"] { desk.end(name) }
        #expect(desk.granted == ["held", "sync", "import", "read", "load", "urgent"])
    }

    @Test("Very many requests inside operations, and as many for what these hold, take little time each") func scale() {
        var desk = ResourceDesk()
        let (database, file, other) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("held", file)
        desk.request("sync", database)
        desk.request("import", other)
        let count = TestExtent.choose(1_000, long: 100_000)
        guard let sync = desk.ids["sync"], let around = desk.ids["import"] else { return }
        var ids: [RequestID] = []
        for (resource, inside) in [(file, [sync]), (database, [around]), (database, [])] {
            for number in 0..<count {
                let answer = desk.machine.requested([resource], priority: number % 5, inside: inside)
                guard case .waiting(let id, let granted) = answer, granted.isEmpty else {
                    Issue.record("\(answer)")
                    return
                }
                ids.append(id)
            }
        }
        #expect(desk.machine.cycle(closedBy: ids[count]) == nil)
        guard case .cycle = desk.machine.requested([other], inside: [sync]) else {
            Issue.record("no cycle")
            return
        }
        for id in ids.reversed() { #expect(desk.machine.ended(id).isEmpty) }
        #expect(desk.machine.blockedHolderCount == 0)
    }
}
