import OperationKitTestSupport

@testable import OperationKit

/// A resource for each key, as long as it is used.
@Suite("Resources with keys", .hangGuard) struct KeyedResourceTests {
    @Test("Operations with one key share a resource, those with another one or none have theirs")
    func keys() {
        let hosts = KeyedConcurrencyLimit("host", 4, maximumWaiting: 7)
        let first = hosts["a"]
        #expect(first === hosts[Optional("a")] && first !== hosts["b"])
        #expect((first.name, first.limit, first.maximumWaiting) == ("host a", 4, 7))
        let none = hosts[URL(string: "file")?.host]
        #expect(none === hosts[String?.none] && none !== first && none.name == "host")

        let files = KeyedExclusiveAccess("file", maximumWaiting: 1)
        let file = files[1]
        #expect(file === files[1] && file !== files[2])
        #expect(file.name == "file 1" && file.maximumWaiting == 1)
    }

    @Test("No more operations with the same key work at the same time than the limit says, and others go on")
    func limit() async throws {
        let hosts = KeyedConcurrencyLimit("host", 2)
        let (log, release) = (EventLog(), Gate())
        let queue = OperationQueue()
        let loads = ["a", "a", "a", "b"].map { host in
            let load = TaskOperation(name: host) {
                log.add(host)
                await release.opened()
            }
            load.require(hosts[host])
            return load
        }
        for load in loads { queue.addOperation(load) }
        await eventually("not all work that may") { log.events.count == 3 && hosts["a"].waitingCount == 1 }
        #expect(log.count(of: "a") == 2 && log.count(of: "b") == 1)
        release.open()
        try await queue.allOperationsFinished()
        #expect(log.events.count == 4)
    }

    @Test("A resource exists as long as an operation waits for it or has it, and nothing is left of its key then")
    func lifetime() async throws {
        let files = KeyedExclusiveAccess("file")
        let (queue, began, release) = (OperationQueue(), Gate(), Gate())
        let holder = TaskOperation {
            began.open()
            await release.opened()
        }
        holder.require(files["a"])
        let waiter = TaskOperation { 1 }
        waiter.require(files["a"])
        queue.addOperation(holder)
        await began.opened()
        queue.addOperation(waiter)
        #expect(files.resources.count == 1)
        await eventually("the second one does not wait") { files["a"].waitingCount == 1 }
        release.open()
        _ = try await (holder.value, waiter.value)
        await eventually("the resource is kept") { files.resources.count == 0 }
        for key in 0..<TestExtent.choose(1_000, long: 1_000_000) { _ = files[key] }
        _ = files[Double.nan]
        #expect(files.resources.count == 0)
    }

    @Test("A key whose resource is freed and wanted by several threads has one resource at any time")
    func races() async {
        let accounts = KeyedExclusiveAccess("account")
        let clashes = Shared(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for key in 0..<TestExtent.choose(2_000, long: 100_000) {
                        let account = accounts[key / 8]
                        if accounts[key / 8] !== account { clashes.change { $0 += 1 } }
                    }
                }
            }
        }
        #expect(clashes.value == 0 && accounts.resources.count == 0)
    }

    /// Tells of its end, also while it lives.
    private final class Entry: Sendable {
        let released: @Sendable () -> Void

        init(_ released: @escaping @Sendable () -> Void) { self.released = released }

        deinit { released() }
    }

    @Test("An object keeps its key while the one before it tells of its end, and is freed with no lock held")
    func successors() async {
        let objects = KeyedObjects<Entry>()
        let released = objects.object(for: 1) { Entry($0) }.released
        let (clashes, isOver) = (Shared(0), Shared(false))
        await concurrently([
            { while !isOver.value { released() } },
            {
                for number in 0..<TestExtent.choose(20_000, long: 1_000_000) {
                    let object = objects.object(for: 1) { Entry($0) }
                    if objects.object(for: 1, make: { Entry($0) }) !== object { clashes.change { $0 += 1 } }
                    // Dropped at other moments of what the other thread does.
                    for _ in 0..<number % 64 { _ = clashes.value }
                }
                isOver.value = true
            },
        ])
        #expect(clashes.value == 0 && objects.count == 0)
    }
}
