import OperationKitTestSupport

/// Chains of any length: no recursion, linear cost, and nothing is kept.
@Suite("Long chains", .hangGuard) struct LongChainTests {
    /// Operations that hold each other, so many deep.
    private static let deep: [@Sendable (_ count: Int) -> Operation] = [
        { count in (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in last.map { $0 } } },
        { count in
            (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in
                last.recoverRun { _ in TaskOperation { 1 } }
            }
        },
        { count in
            (0..<count).reduce(TaskOperation { 1 } as IOOperation) { last, _ in [last].gathered().map { $0[0] } }
        },
        { count in chain(of: (0..<count).map { Step<Int, Int>.increment("\($0)") }) },
        { count in
            (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { first, _ in
                MacroOperation(first).then(Step.increment("next"))
            }
        },
        { count in
            (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in
                MacroOperation(Step.increment("previous")).then(last)
            }
        },
        { count in (0..<count).reduce(Step<Int, Int>.increment("a") as IOOperation) { last, _ in MacroOperation(last) }
        },
        { count in
            (0..<count).reduce(AsyncOperation()) { last, _ in
                let next = AsyncOperation()
                next.bind(to: last) { _, _ in }
                return next
            }
        },
    ]

    @Test("Operations that hold each other and were never run are freed without recursion", arguments: deep.indices)
    func unrun(index: Int) async {
        await onThread(stackSize: workerStackSize) {
            _ = Self.deep[index](TestExtent.choose(4_000, long: index < 3 ? 100_000 : 10_000))
        }
    }

    @Test(
        "A macro of 10,000 steps runs, or ends where one of them is cancelled, and all finish and are released",
        arguments: [false, true])
    func runs(isCancelled: Bool) async {
        let tracker = LeakTracker()
        await onThread(stackSize: workerStackSize) {
            let steps = (0..<10_000).map { number in
                tracker.track(
                    Step<Int, Int> { step, input in
                        if isCancelled, number == 5_000 { step.cancel() } else { step.finish(with: input + 1) }
                    })
            }
            let macro = chain(of: steps).with(input: 0)
            macro.start()
            macro.waitUntilFinished()
            #expect(macro.output == (isCancelled ? nil : 10_000) && steps.allSatisfy(\.isFinished))
            #expect(macro.failedStep?.index == (isCancelled ? 5_000 : nil))
        }
        await tracker.expectAllReleased()
    }

    private typealias Token = LeakTracker.Token

    @Test("Steps and their values are released as they finish") func releasesSteps() async {
        let (tracker, most) = (LeakTracker(), Shared(0))
        do {
            // The thread that starts the macro holds its steps until then.
            let isStarted = Gate()
            let first = Step<Token, Token> { step, input in
                elsewhere {
                    isStarted.pass()
                    step.finish(with: input)
                }
            }
            let macro = (1..<200).reduce(MacroOperation(first)) { macro, number in
                macro.then(
                    tracker.track(
                        Step<Token, Token> { step, _ in
                            if number == 150 { most.value = tracker.alive.count }
                            step.finish(with: tracker.token("output"))
                        }))
            }
            macro.with(input: Token()).start()
            isStarted.open()
            try? await macro.finished()
            #expect(macro.error == nil)
        }
        // 50 steps to come, those in hand, and their values.
        #expect((1...60).contains(most.value), "\(most.value) are alive")
        await tracker.expectAllReleased()
    }
}
