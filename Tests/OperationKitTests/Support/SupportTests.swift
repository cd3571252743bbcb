import OperationKitTestSupport

@Suite("Support", .hangGuard) struct SupportTests {
    @Test("A race runs every body in every round before it is checked") func everyRound() async {
        let wrong = Shared(0)
        let checked = Shared(0)
        await race(
            rounds: 100, seed: 1, prepare: { _ in Shared(0) },
            Array(repeating: { $0.change { $0 += 1 } }, count: 3),
            check: { subject, _ in
                if subject.value != 3 { wrong.change { $0 += 1 } }
                checked.change { $0 += 1 }
            })
        #expect(wrong.value == 0)
        #expect(checked.value == TestExtent.choose(8, long: 100))
    }
}
