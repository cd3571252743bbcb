import OperationKitTestSupport
import Testing

@testable import OperationKit

/// The state machine of a run over a sequence alone: no thread, no lock, no sequence.
@Suite("SequenceStateMachine") struct SequenceStateMachineTests {
    private typealias Unit = SequenceStateMachine.Unit

    /// A run whose first worker is about to read.
    private func started(limit: Int, stopsAtFirstFailure: Bool = false) -> SequenceStateMachine {
        var machine = SequenceStateMachine(limit: limit, stopsAtFirstFailure: stopsAtFirstFailure)
        #expect(machine.started() == .requestWorker)
        let (workerAction, action) = machine.workerStarted()
        #expect(workerAction == .read && action == nil)
        return machine
    }

    @Test("An empty sequence ends with its first read, which is a worker's")
    func emptySequence() {
        var machine = started(limit: 3)
        let (workerAction, action) = machine.sequenceEnded()
        #expect(workerAction == .stop && action == .finish(isCancelled: false))
    }

    @Test("The worker of a unit that ends in its call reads on")
    func synchronousUnit() {
        var machine = started(limit: 1)
        #expect(machine.unitRead() == (.perform, nil))
        var unit = Unit.onStack
        #expect(machine.ended(&unit, .success) == (true, nil))
        #expect(machine.inFlightCount == 1, "Its call has not returned")
        #expect(machine.returned(&unit) == (.release, nil))
        #expect(machine.inFlightCount == 1, "Its items are there")
        #expect(machine.released(&unit) == (.read, nil))
        #expect(unit == .ended && machine.inFlightCount == 0)
        #expect(machine.sequenceEnded() == (.stop, .finish(isCancelled: false)))
    }

    @Test("The worker of a unit that outlasts its call ends at the limit")
    func detachedUnit() {
        var machine = started(limit: 1)
        #expect(machine.unitRead() == (.perform, nil))
        var unit = Unit.onStack
        #expect(machine.returned(&unit) == (.stop, nil))
        #expect(machine.ended(&unit, .success) == (true, .releaseUnit))
        #expect(machine.inFlightCount == 1, "Its items are there")
        #expect(machine.detachedUnitReleased(&unit) == .requestWorker)
        #expect(machine.workerStarted() == (.read, nil))
    }

    @Test("The next worker is requested when a unit has been read, and not before")
    func nextWorker() {
        var machine = started(limit: 3)
        #expect(machine.unitRead() == (.perform, .requestWorker))
        #expect(machine.workerStarted() == (.read, nil))
        #expect(machine.unitRead() == (.perform, .requestWorker))
        var unit = Unit.onStack
        #expect(machine.returned(&unit) == (.stop, nil), "The place that is left is that of the worker on its way")
        #expect(machine.workerStarted() == (.read, nil))
        #expect(machine.unitRead() == (.perform, nil))
        #expect(machine.inFlightCount == 3)
    }

    @Test("A worker that starts while another one reads ends, and the next is requested after that")
    func twoReaders() {
        var machine = started(limit: 2)
        #expect(machine.unitRead() == (.perform, .requestWorker))
        var unit = Unit.onStack
        _ = machine.ended(&unit, .success)
        _ = machine.returned(&unit)
        #expect(machine.released(&unit) == (.read, nil), "It does not wait for the worker on its way")
        #expect(machine.workerStarted() == (.stop, nil))
        #expect(machine.unitRead() == (.perform, .requestWorker))
    }

    @Test("A worker whose unit has ended while another one reads ends")
    func endWhileAnotherReads() {
        var machine = started(limit: 2)
        _ = machine.unitRead()
        #expect(machine.workerStarted() == (.read, nil))
        var unit = Unit.onStack
        _ = machine.ended(&unit, .success)
        _ = machine.returned(&unit)
        #expect(machine.released(&unit) == (.stop, nil))
        #expect(machine.sequenceEnded() == (.stop, .finish(isCancelled: false)))
    }

    @Test("A worker that yields is requested again, unless another one is on its way")
    func yield() {
        var machine = started(limit: 2)
        #expect(machine.workerYielded() == .requestWorker)
        _ = machine.workerStarted()
        #expect(machine.unitRead() == (.perform, .requestWorker))
        var unit = Unit.onStack
        _ = machine.ended(&unit, .success)
        _ = machine.returned(&unit)
        #expect(machine.released(&unit) == (.read, nil))
        #expect(machine.workerYielded() == nil)
        #expect(machine.workerStarted() == (.read, nil))
    }

    @Test("In every state of a unit of a sequence, the second report of its end is ignored")
    func secondReport() {
        for outcome in [SequenceStateMachine.Outcome.success, .cancellation, .failure] {
            for isDetached in [false, true] {
                var machine = started(limit: 2)
                _ = machine.unitRead()
                var unit = Unit.onStack
                if isDetached { _ = machine.returned(&unit) }
                #expect(machine.ended(&unit, outcome).isAccepted)
                #expect(machine.ended(&unit, .failure) == (false, nil))
                if !isDetached { _ = machine.returned(&unit) }
                #expect(machine.ended(&unit, .failure) == (false, nil))
                switch (outcome, isDetached) {
                case (.success, false): _ = machine.released(&unit)
                case (.success, true): _ = machine.detachedUnitReleased(&unit)
                default: _ = machine.failureDelivered(&unit)
                }
                #expect(unit == .ended && machine.ended(&unit, .failure) == (false, nil))
            }
        }
    }

    @Test("The worker that performed a unit delivers its failure before it reads on")
    func failureOnStack() {
        var machine = started(limit: 1)
        _ = machine.unitRead()
        var unit = Unit.onStack
        #expect(machine.ended(&unit, .failure) == (true, nil))
        #expect(machine.returned(&unit) == (.deliverFailure, nil))
        #expect(machine.inFlightCount == 1)
        #expect(machine.failureDelivered(&unit) == (.read, nil))
        #expect(machine.inFlightCount == 0)
    }

    @Test("A unit that fails after its call has a worker of its own, which goes on reading")
    func failureOfADetachedUnit() {
        var machine = started(limit: 1)
        _ = machine.unitRead()
        var unit = Unit.onStack
        #expect(machine.returned(&unit) == (.stop, nil))
        #expect(machine.ended(&unit, .cancellation) == (true, .requestDelivery))
        #expect(machine.failureDelivered(&unit) == (.read, nil))
    }

    @Test("After the first failure nothing is read, and a unit that was being read is not performed")
    func firstFailure() {
        var machine = started(limit: 2, stopsAtFirstFailure: true)
        _ = machine.unitRead()
        #expect(machine.workerStarted() == (.read, nil))
        var (unit, next) = (Unit.onStack, Unit.onStack)
        #expect(machine.ended(&unit, .failure) == (true, nil))
        #expect(machine.unitRead(&next) == (.release, nil))
        #expect(machine.returned(&unit) == (.deliverFailure, nil))
        #expect(machine.failureDelivered(&unit) == (.stop, nil), "The one that was read has not been released")
        #expect(machine.released(&next) == (.stop, .finish(isCancelled: false)))
    }

    @Test("A run that is cancelled ends after the units in flight, and late workers end")
    func cancelled() {
        var machine = started(limit: 3)
        _ = machine.unitRead()
        #expect(machine.workerStarted() == (.read, nil))
        #expect(machine.unitRead() == (.perform, .requestWorker))
        var (first, second) = (Unit.onStack, Unit.onStack)
        _ = machine.ended(&first, .success)
        _ = machine.returned(&first)
        #expect(machine.released(&first) == (.read, nil))
        #expect(machine.cancelled() == (.stop, nil))
        _ = machine.returned(&second)
        #expect(machine.ended(&second, .success) == (true, .releaseUnit))
        #expect(machine.detachedUnitReleased(&second) == .finish(isCancelled: true))
        #expect(machine.workerStarted() == (.stop, nil))
    }

    @Test("A failure that ends the run takes the place of a cancellation, before it and after it")
    func failureAndCancellation() {
        for isCancelledFirst in [false, true] {
            var machine = started(limit: 2, stopsAtFirstFailure: true)
            _ = machine.unitRead()
            #expect(machine.workerStarted() == (.read, nil))
            var unit = Unit.onStack
            _ = machine.returned(&unit)
            if isCancelledFirst { #expect(machine.cancelled() == (.stop, nil)) }
            #expect(machine.ended(&unit, .failure) == (true, .requestDelivery))
            if !isCancelledFirst { #expect(machine.cancelled() == (.stop, nil)) }
            #expect(machine.failureDelivered(&unit) == (.stop, .finish(isCancelled: false)))
        }
    }
}

extension SequenceStateMachine {
    /// The worker has read a unit of which the test needs no more.
    fileprivate mutating func unitRead() -> (workerAction: WorkerAction, action: Action?) {
        var unit = Unit.onStack
        return unitRead(&unit)
    }
}
