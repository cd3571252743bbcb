import Foundation

/// Cancels an operation before its start, one in flight, and a compound with children in all states.
///
/// What is to be cancelled in flight has far more to do than the demo takes, so that on a slow machine too the cancellation
/// comes first.
enum CancelScenario {
    private static let endless = 60.0

    static func play(on bench: Bench) async {
        // On a suspended queue nothing starts, so this one is cancelled before its start for certain.
        bench.queue.isSuspended = true
        let beforeStart = bench.async("before-start", 0.3)
        bench.enqueue(beforeStart)
        await bench.pause(0.1)
        bench.cancel(beforeStart)
        bench.queue.isSuspended = false

        let inFlight = bench.async("in-flight", endless)
        bench.enqueue(inFlight)
        await bench.log.reached(.mainReturned, of: inFlight.report.subject)
        await bench.pause(0.3)
        bench.cancel(inFlight)
        await bench.log.reached(.completion, of: inFlight.report.subject)

        // The first child is done, the second in flight, and the third waits for its turn: the width is 1.
        let compound = bench.compound(
            "whole",
            [bench.async("whole-1", 0.2), bench.async("whole-2", endless), bench.async("whole-3", endless)],
            width: 1)
        bench.enqueue(compound)
        await bench.log.reached(.mainReturned, of: compound.children[1].report.subject)
        await bench.pause(0.2)
        bench.cancel(compound)
    }
}
