import Foundation
import OperationKit

/// Cancels an operation before its start, one in flight, and a compound with children in all states.
///
/// What is to be cancelled in flight has far more to do than the demo takes, so that on a slow machine too the cancellation
/// comes first.
enum CancelScenario {
    private static let endless = 60.0

    static func play(on bench: Bench) async -> Section.Findings {
        // On a suspended queue nothing starts, so this one is cancelled before its start for certain.
        bench.queue.isSuspended = true
        let beforeStart = bench.async("before-start", 0.3)
        bench.enqueue(beforeStart)
        await bench.pause(0.1)
        beforeStart.cancel()
        bench.queue.isSuspended = false

        let inFlight = bench.async("in-flight", endless)
        let events = inFlight.events
        bench.enqueue(inFlight)
        await events.wait(for: "in-flight")
        await bench.pause(0.3)
        inFlight.cancel()
        await bench.finishAll()

        // The first child is done, the second in flight, and the third waits for its turn: the width is 1.
        let children = [bench.async("whole-1", 0.2), bench.async("whole-2", endless), bench.async("whole-3", endless)]
        let compound = bench.compound("whole", children, width: 1)
        let compoundEvents = compound.events
        bench.enqueue(compound)
        await compoundEvents.wait(for: "whole-2")
        await bench.pause(0.2)
        compound.cancel()
        return {
            let findings = Findings(bench.recording.timeline)
            return ["before-start", "in-flight", "whole-1", "whole-2", "whole-3"].map {
                "\($0) \(findings.end(of: $0))."
            }
        }
    }
}

extension OperationEvents {
    /// Suspends until an operation of this name runs.
    fileprivate func wait(for name: String) async {
        for await event in self {
            if event.name == name, case .running = event.kind { return }
        }
    }
}
