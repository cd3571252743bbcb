import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The order of requests, and small programs of operations, explored completely.
@Suite("ResourceStateMachine") struct ResourceStateMachineTests {
    /// A machine whose requests have names.
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

    @Test("A request with a higher priority comes first, then the one that came first") mutating func order() {
        let a = desk.resource()
        desk.request("first", a)
        for (name, priority) in [("low", -4), ("normal", 0), ("later", 0), ("high", 4)] {
            desk.request(name, a, priority: priority)
        }
        for name in ["first", "high", "normal", "later", "low"] { desk.end(name) }
        #expect(desk.granted == ["first", "high", "normal", "later", "low"])
    }

    @Test("A request that lacks a resource keeps its place in the lines of all, and takes none before it gets all")
    mutating func together() {
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

    @Test("A request that ends while it waits lets the next ones go on") mutating func withdrawn() {
        let (a, b) = (desk.resource(), desk.resource())
        desk.request("holder", a)
        desk.request("both", a, b)
        desk.request("later", b)
        desk.end("both")
        #expect(desk.granted == ["holder", "later"])
    }

    @Test("Requests from inside a holder come before others, and hold up these, but not each other")
    mutating func inside() {
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

    @Test("Of several requests from inside that a release could serve, the first one in the order gets it")
    mutating func insideOrder() {
        let (a, b, c) = (desk.resource(), desk.resource(), desk.resource())
        desk.request("sync", a, isComposite: true)
        desk.request("user", b, c)
        desk.request("both", c, b, priority: 1, inside: "sync")
        desk.request("single", b, inside: "sync")
        desk.end("user")
        #expect(desk.granted.last == "both")
    }

    @Test("A request moves when it comes inside, and is refused if what it requires is held there")
    mutating func enclosed() {
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
        #expect(desk.request("child", a, inside: "inner") == desk.ids["sync"].map { .refused(.init(resource: a, holder: $0)) })
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
    }

    @Test("No more requests than allowed wait") mutating func maximum() {
        let (a, b) = (desk.resource(maximumWaiting: 1), desk.resource(maximumWaiting: 0))
        desk.request("holder", a, b)
        #expect(desk.request("b", b) == .tooManyWaiting(b))
        desk.request("first", a)
        #expect(desk.request("second", a) == .tooManyWaiting(a))
        desk.end("first")
        if case .waiting = desk.request("third", a) {} else { Issue.record("It does not wait") }
    }

    // MARK: - Small programs

    @Test(
        "In every small program all ends that can, in the order that the rules say, in whatever order it happens",
        arguments: [[1, 1], [2, 1], [2, 2]])
    func programs(limits: [Int]) {
        let stride = TestExtent.choose(61, long: 1)
        var number = 0
        for outer in 1...3 {
            for inner in 1...3 {
                for isNested in [false, true] {
                    for leaves in 0..<225 where leaves % 15 <= leaves / 15 {
                        number += 1
                        guard number % stride == 0 else { continue }
                        let program = SmallProgram(
                            limits: limits, outer: outer, inner: inner, isNested: isNested,
                            leaves: [leaves % 15, leaves / 15])
                        var exploration = Exploration(program)
                        exploration.explore()
                        if let problem = exploration.problem { Issue.record("\(program): \(problem)") }
                    }
                }
            }
        }
    }
}

/// Two composites and two leaves, each of which requires one or both of two resources.
private struct SmallProgram: CustomStringConvertible {
    struct Member {
        let required: [Int]
        let parent: Int?
        /// Whether it starts before it is put into its parent.
        let isLate: Bool
        let isComposite: Bool
    }

    let limits: [Int]
    let members: [Member]

    /// - Parameters: What is required is a set of bits. A leaf is outside, or in one of both composites, from its start or late.
    init(limits: [Int], outer: Int, inner: Int, isNested: Bool, leaves: [Int]) {
        func resources(_ bits: Int) -> [Int] { [0, 1].filter { bits >> $0 & 1 == 1 } }
        self.limits = limits
        members =
            [
                Member(required: resources(outer), parent: nil, isLate: false, isComposite: true),
                Member(required: resources(inner), parent: isNested ? 0 : nil, isLate: false, isComposite: true),
            ]
            + leaves.map { leaf in
                let place = leaf / 3
                return Member(
                    required: resources(leaf % 3 + 1), parent: place == 0 ? nil : (place - 1) % 2, isLate: place > 2,
                    isComposite: false)
            }
    }

    /// Whether both composites need what the other one holds for something inside. That has no end, and nothing looks for it.
    var isCrosswise: Bool {
        members[1].parent == nil
            && [0, 1].allSatisfy { composite in
                members.contains { $0.parent == composite && !Set($0.required).isDisjoint(with: members[1 - composite].required) }
            }
    }

    var description: String {
        members.map { "\($0.required)\($0.parent.map { " in \($0)" } ?? "")\($0.isLate ? " late" : "")" }
            .joined(separator: ", ") + " of \(limits)"
    }
}

/// Goes through all orders in which the members of a program request, join and end, with the machine and with its rules side by side.
private struct Exploration {
    private enum Stage: Hashable { case idle, waiting, working, ended }

    private struct Key: Hashable {
        var stages: [Stage]
        var hasJoined: [Bool]
        /// The members that wait, in the order of their arrival.
        var arrivals: [Int]
    }

    private struct Moment {
        var machine: ResourceStateMachine
        let resources: [ResourceID]
        var ids: [RequestID?]
        var key: Key
    }

    private let program: SmallProgram
    private var seen: Set<Key> = []
    private(set) var problem: String?

    init(_ program: SmallProgram) {
        self.program = program
    }

    mutating func explore() {
        var machine = ResourceStateMachine()
        let resources = program.limits.map { machine.resourceAdded(limit: $0) }
        let count = program.members.count
        var open = [
            Moment(
                machine: machine, resources: resources, ids: Array(repeating: nil, count: count),
                key: Key(
                    stages: Array(repeating: .idle, count: count), hasJoined: program.members.map { !$0.isLate },
                    arrivals: []))
        ]
        while let moment = open.popLast(), problem == nil {
            guard seen.insert(moment.key).inserted else { continue }
            check(moment)
            let next = (0..<count).flatMap { steps(of: $0, at: moment) }
            let hasEnded = moment.key.stages.allSatisfy { $0 == .ended }
            if next.isEmpty, !hasEnded, !program.isCrosswise { problem = "it hangs with \(moment.key)" }
            open += next
        }
    }

    private mutating func steps(of member: Int, at moment: Moment) -> [Moment] {
        let (members, key) = (program.members, moment.key)
        var next: [Moment] = []
        switch key.stages[member] {
        case .idle:
            // What is inside a composite starts when that works.
            let parent = members[member].parent.map { key.stages[$0] }
            if parent == .working || parent == nil || !key.hasJoined[member] { next.append(started(member, moment)) }
        case .working:
            let isBusy = members.indices.contains { members[$0].parent == member && key.stages[$0] != .ended }
            if !isBusy { next.append(ended(member, moment)) }
        case .waiting, .ended: break
        }
        if !key.hasJoined[member], let parent = members[member].parent, key.stages[parent] != .ended,
            key.stages[member] != .idle
        {
            next.append(joined(member, moment))
        }
        return next
    }

    /// The nearest composite around a member that holds something.
    private func holder(of member: Int, _ key: Key) -> Int? {
        guard key.hasJoined[member], let parent = program.members[member].parent else { return nil }
        return key.stages[parent] == .working ? parent : holder(of: parent, key)
    }

    private mutating func started(_ member: Int, _ moment: Moment) -> Moment {
        var next = moment
        let required = program.members[member].required
        let holder = holder(of: member, moment.key)
        let answer = next.machine.requested(
            required.map { moment.resources[$0] }, isComposite: program.members[member].isComposite,
            inside: holder.flatMap { moment.ids[$0] })
        next.key.stages[member] = .waiting
        next.key.arrivals.append(member)
        switch answer {
        case .granted(let id), .waiting(let id): next.ids[member] = id
        case .refused: refuse(member, &next)
        case .tooManyWaiting: problem = "too many wait"
        }
        var granted: [RequestID] = []
        if case .granted(let id) = answer { granted = [id] }
        settle(&next, granted)
        return next
    }

    private mutating func joined(_ member: Int, _ moment: Moment) -> Moment {
        var next = moment
        next.key.hasJoined[member] = true
        enclose(&next)
        return next
    }

    private mutating func ended(_ member: Int, _ moment: Moment) -> Moment {
        var next = moment
        next.key.stages[member] = .ended
        if let id = next.ids[member] { settle(&next, next.machine.ended(id)) }
        return next
    }

    /// Those that were granted begin. What waits inside them has come inside a holder.
    private mutating func settle(_ moment: inout Moment, _ granted: [RequestID]) {
        for id in granted {
            guard let member = moment.ids.firstIndex(of: id) else { continue }
            moment.key.stages[member] = .working
            moment.key.arrivals.removeAll { $0 == member }
        }
        if !granted.isEmpty { enclose(&moment) }
    }

    private mutating func enclose(_ moment: inout Moment) {
        for member in program.members.indices where moment.key.stages[member] != .ended {
            guard let id = moment.ids[member], let holder = holder(of: member, moment.key).flatMap({ moment.ids[$0] })
            else { continue }
            let (refusal, granted) = moment.machine.enclosed(id, by: holder)
            if refusal != nil { refuse(member, &moment) }
            settle(&moment, granted)
        }
    }

    private mutating func refuse(_ member: Int, _ moment: inout Moment) {
        var around = program.members[member].parent
        var isHeld = false
        while let composite = around {
            isHeld = isHeld || !Set(program.members[composite].required).isDisjoint(with: program.members[member].required)
            around = program.members[composite].parent
        }
        if !isHeld { problem = "\(member) is refused" }
        moment.key.stages[member] = .ended
        moment.key.arrivals.removeAll { $0 == member }
        // What is inside it does not run, either.
        for child in program.members.indices where program.members[child].parent == member {
            if moment.key.stages[child] == .idle, moment.key.hasJoined[child] { moment.key.stages[child] = .ended }
        }
    }

    /// No more work than the limits say, and none waits that the rules would grant.
    private mutating func check(_ moment: Moment) {
        let (members, key) = (program.members, moment.key)
        let free = program.limits.indices.map { resource in
            program.limits[resource]
                - members.indices.count { key.stages[$0] == .working && members[$0].required.contains(resource) }
        }
        if free.contains(where: { $0 < 0 }) { problem = "more work than the limit says with \(key)" }
        let order = key.arrivals.sorted { holder(of: $0, key) != nil && holder(of: $1, key) == nil }
        for (place, member) in order.enumerated() where key.stages[member] == .waiting {
            let hasPlaces = members[member].required.allSatisfy { free[$0] > 0 }
            let isHeldUp =
                holder(of: member, key) == nil
                && order[..<place].contains { !Set(members[$0].required).isDisjoint(with: members[member].required) }
            if hasPlaces, !isHeldUp { problem = "\(member) is not granted with \(key)" }
        }
    }
}
