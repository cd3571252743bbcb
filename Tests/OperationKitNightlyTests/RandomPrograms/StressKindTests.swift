import OperationKitTestSupport

extension Stress {
    /// Kinds of events that broke the library once, each in a small program of its own, so that they are tried in every
    /// run.
    @Suite("Stress: kinds of events", .hangGuard) struct StressKindTests {
        private static func leaf(_ id: Int, _ kind: StressLeaf.Kind = .inline, fails: Bool = false) -> StressNode {
            StressNode(id: id, work: .leaf(StressLeaf(kind: kind, fails: fails)))
        }

        private static func program(
            _ children: [StressNode], limit: Int = -1, _ actions: [StressAction] = [], start: StressStart = .queue
        ) -> StressProgram {
            let root = StressNode(id: 0, work: .compound(StressCompound(limit: limit, children: children)))
            return StressProgram(root: root, actions: actions, start: start)
        }

        @Test(
            "A task that awaits the root is cancelled while an operation ends with a lock of its own",
            arguments: [
                StressStart.task, .coordinator,
            ])
        func cancelledTask(start: StressStart) async {
            let children = [Self.leaf(1, .guarded), Self.leaf(2, .awaiting), Self.leaf(3, .hopping)]
            for trigger in [
                StressAction.Trigger.beforeStart, .inside(1), .inside(2), .outside(thread: 0, delay: 3_000),
            ] {
                let cancellation = StressAction(trigger: trigger, effect: .cancelTask)
                await Stress.expectRight(Self.program(children, [cancellation], start: start), times: 3)
            }
        }

        @Test("An operation cancels the queue that it runs on, and puts another one there")
        func useOfThePrivateQueue() async {
            let children = [
                Self.leaf(1), Self.leaf(2, .block), Self.leaf(3, .throwing), Self.leaf(4, .foreign),
                StressNode(id: 5, work: .macro([Self.leaf(6), Self.leaf(7, .hopping)])),
            ]
            for id in [1, 2, 6] {
                let actions = [
                    StressAction(trigger: .inside(id), effect: .useQueue(id)),
                    StressAction(trigger: .inside(id), effect: .cancelQueue(id)),
                ]
                await Stress.expectRight(Self.program(children, limit: 1, actions))
            }
        }

        @Test("Children come with a state of their own, and may wait for what never starts")
        func statesOfChildren() async {
            for entry in StressEntry.allCases {
                for kind in [StressLeaf.Kind.inline, .throwing, .hopping, .stoppable] {
                    var child = Self.leaf(2, kind)
                    child.entry = entry
                    child.waitsForever = entry.isCancelled
                    child.dropsDependency = entry == .fresh
                    let first = Self.leaf(1, .hopping)
                    let addition = StressAction(trigger: .inside(1), effect: .add(child, to: 0))
                    await Stress.expectRight(Self.program([first, child]), times: 1)
                    await Stress.expectRight(Self.program([first], [addition]), times: 1)
                }
            }
        }

        @Test(
            "Steps require the success of steps before them, and are cancelled while they wait for an external dependency"
        )
        func steps() async {
            var last = Self.leaf(4, .hopping)
            last.requires = [2, 3]
            var cancelled = Self.leaf(7)
            cancelled.entry = .cancelledMeanwhile
            cancelled.waitsForever = true
            let chain = StressNode(id: 1, work: .macro([Self.leaf(2), Self.leaf(3, .hopping), last]))
            let stopped = StressNode(id: 5, work: .macro([Self.leaf(6, .hopping), cancelled]))
            await Stress.expectRight(Self.program([chain, stopped]))
        }

        @Test("Operations are recovered from by others, and gathered, while they are cancelled, finished and fail")
        func recoveriesAndGatherings() async {
            let recovery = StressNode(
                id: 1, work: .recovery(Self.leaf(2, .hopping, fails: true), Self.leaf(3, .hopping)))
            let failed = StressNode(id: 4, work: .recovery(Self.leaf(5, fails: true), Self.leaf(6, .task, fails: true)))
            let successful = StressNode(id: 7, work: .recovery(Self.leaf(8), Self.leaf(9)))
            let leaves = [Self.leaf(11, .hopping), Self.leaf(12, fails: true), Self.leaf(13, .task)]
            let gathering = StressNode(id: 10, work: .gathering(StressCompound(limit: 2, children: leaves)))
            let children = [recovery, failed, successful, gathering]
            await Stress.expectRight(Self.program(children))
            let effects: [StressAction.Effect] = [
                .cancel(1), .cancelWithReason(1), .cancelWithReason(2), .cancel(3), .finish(1, fails: true),
                .cancel(10),
                .cancelWithReason(10), .cancel(11), .cancelWithReason(13), .finish(10, fails: false), .cancelQueue(2),
            ]
            for effect in effects {
                for trigger in [
                    StressAction.Trigger.inside(2), .inside(3), .inside(11), .outside(thread: 0, delay: 3_000),
                ] {
                    await Stress.expectRight(
                        Self.program(children, [StressAction(trigger: trigger, effect: effect)]), times: 1)
                }
            }
        }

        @Test("Each member of a chain whose first one fails carries that failure, and no other")
        func chain() async {
            let members = (1...6).map { id in
                var member = Self.leaf(id, fails: id == 1)
                if id > 1 { member.requires = [id - 1] }
                return member
            }
            await Stress.expectRight(Self.program(members))
        }

        @Test("Closures lose their finish while what they belong to is cancelled")
        func losses() async {
            var dependent = Self.leaf(3)
            dependent.requires = [2]
            let macro = StressNode(id: 5, work: .macro([Self.leaf(6, .hopping), Self.leaf(7, .losing)]))
            let waterfall = StressNode(id: 8, work: .waterfall([Self.leaf(9, .throwing), Self.leaf(10, .losing)]))
            let children = [Self.leaf(1, .losing), Self.leaf(2, .losing), dependent, macro, waterfall]
            await Stress.expectRight(Self.program(children))
            await Stress.expectRight(Self.program(children, limit: 1))
            for id in [0, 1, 2, 7, 8] {
                for trigger in [
                    StressAction.Trigger.beforeStart, .inside([1, 7, 10].contains(id) ? id : 2),
                    .outside(thread: 0, delay: 3_000),
                ] {
                    let action = StressAction(trigger: trigger, effect: .cancelWithReason(id))
                    await Stress.expectRight(Self.program(children, [action]), times: 1)
                }
            }
        }

        @Test("Additions are refused, and dependencies come late, while others add")
        func refusals() async {
            let actions = [
                StressAction(trigger: .outside(thread: 0, delay: 300), effect: .addCycle(to: 0, isPair: true)),
                StressAction(trigger: .outside(thread: 0, delay: 300), effect: .addAgain(1)),
                StressAction(trigger: .outside(thread: 1, delay: 300), effect: .add(Self.leaf(3, fails: true), to: 0)),
                StressAction(trigger: .outside(thread: 1, delay: 300), effect: .depend(2, on: nil)),
                StressAction(trigger: .inside(1), effect: .addCycle(to: 0, isPair: false)),
                StressAction(trigger: .inside(1), effect: .pause(0)),
            ]
            await Stress.expectRight(Self.program([Self.leaf(1, .hopping), Self.leaf(2, .block)], actions))
        }
    }
}
