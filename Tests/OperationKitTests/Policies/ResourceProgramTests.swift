import OperationKitTestSupport

@testable import OperationKit

@Suite("ResourceStateMachine in programs") struct ResourceProgramTests {
    @Test("In each small program all ends that can, in the order of the rules", arguments: [[1, 1], [2, 1], [2, 2]])
    func programs(limits: [Int]) {
        // 225 pairs of leaves, of which each is there in two orders, in 9 pairs of composites, inside each other or not.
        for number in stride(from: 0, to: 225 * 9 * 2, by: TestExtent.choose(61, long: 1)) {
            let (leaves, composites) = ([number % 15, number / 15 % 15], number / 225)
            if leaves[0] > leaves[1] { continue }
            let program = SmallProgram(
                limits: limits, outer: composites % 3 + 1, inner: composites / 3 % 3 + 1, isNested: composites > 8,
                leaves: leaves)
            var exploration = Exploration(program)
            exploration.explore()
            if let problem = exploration.problem { Issue.record("\(program): \(problem)") }
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
    }

    let limits: [Int]
    let members: [Member]

    /// - Parameters: What is required is a set of bits. A leaf is outside, or in one of both composites, from its start or late.
    init(limits: [Int], outer: Int, inner: Int, isNested: Bool, leaves: [Int]) {
        func resources(_ bits: Int) -> [Int] { [0, 1].filter { bits >> $0 & 1 == 1 } }
        self.limits = limits
        members =
            [
                Member(required: resources(outer), parent: nil, isLate: false),
                Member(required: resources(inner), parent: isNested ? 0 : nil, isLate: false),
            ]
            + leaves.map { leaf in
                let place = leaf / 3
                return Member(
                    required: resources(leaf % 3 + 1), parent: place == 0 ? nil : (place - 1) % 2, isLate: place > 2)
            }
    }

    /// Whether both composites need what the other one holds for something inside. That has no end, and nothing looks for it.
    var isCrosswise: Bool {
        members[1].parent == nil
            && [0, 1].allSatisfy { composite in
                members.contains {
                    $0.parent == composite && !Set($0.required).isDisjoint(with: members[1 - composite].required)
                }
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
            required.map { moment.resources[$0] }, isComposite: member < 2,
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
            isHeld =
                isHeld || !Set(program.members[composite].required).isDisjoint(with: program.members[member].required)
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
