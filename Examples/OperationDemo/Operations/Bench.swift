import Dispatch
import Foundation
import OperationKit

/// A queue and a recording, and the means to create operations for them.
///
/// Durations are given in seconds at normal speed.
final class Bench: Sendable {
    let recording: Recording
    let queue: OperationQueue
    private let speed: Double

    init(queue: OperationQueue, recording: Recording, speed: Double) {
        self.queue = queue
        self.recording = recording
        self.speed = speed
    }

    func sync(_ name: String, _ seconds: Double, failure: (any Error)? = nil) -> SyncWork {
        SyncWork(track: track(name, "SyncWork"), seconds: seconds / speed, failure: failure)
    }

    func naive(_ name: String, _ seconds: Double) -> NaiveWork {
        NaiveWork(track: track(name, "NaiveWork"), seconds: seconds / speed)
    }

    func async(_ name: String, _ seconds: Double, failure: (any Error)? = nil) -> TimedWork {
        TimedWork(name: name, seconds: seconds / speed, failure: failure)
    }

    /// A compound of asynchronous operations that take as long as given, as many at the same time as the queue allows.
    func compound(_ name: String, _ seconds: [Double]) -> CompoundOperation {
        compound(name, seconds.enumerated().map { async("\(name)-\($0 + 1)", $1) })
    }

    /// A compound, of which as many children run at the same time as the queue allows, unless said otherwise.
    func compound(_ name: String, _ children: [Operation], width: Int? = nil) -> CompoundOperation {
        let compound = CompoundOperation(
            name: name, maxConcurrentOperationCount: width ?? queue.maxConcurrentOperationCount,
            failurePolicy: .continueAll)
        add(children, to: compound)
        return compound
    }

    /// Adds children to a compound, and has their additions recorded.
    func add(_ children: [Operation], to compound: CompoundOperation) {
        recording.observe(compound)
        do {
            try compound.addOperations(children)
        } catch {
            preconditionFailure("The operations of the demo can be added: \(error)")
        }
        for child in children {
            if let child = child as? AsyncOperation {
                recording.expect(child, in: compound.observationID)
            } else {
                (child as? any TrackedOperation)?.track.added(to: compound.observationID)
            }
        }
    }

    /// A typed step that takes its time and then makes its output.
    func step<Input, Output>(
        _ name: String, _ seconds: Double, didProgress: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable (Input) throws -> Output
    ) -> DataStep<Input, Output> {
        DataStep(name: name, seconds: seconds / speed, recording: recording, didProgress: didProgress, work)
    }

    /// Work that is no operation, for the timeline.
    func track(_ name: String, _ typeName: String) -> Track {
        Track(name, typeName: typeName, in: recording)
    }

    /// Puts operations on the queue, in order. The children of a compound are on the compound's own.
    func enqueue(_ operations: Operation...) {
        for operation in operations {
            recording.enqueue(operation)
            queue.addOperation(operation)
        }
    }

    /// Suspends until the queue is empty.
    func finishAll() async {
        try? await queue.allOperationsFinished()
    }

    /// A time that the speed shortens.
    func duration(_ seconds: Double) -> Duration {
        .seconds(seconds / speed)
    }

    /// Suspends for a time that the speed shortens.
    func pause(_ seconds: Double) async {
        try? await Task.sleep(for: duration(seconds))
    }

    /// Calls `body` on another thread after a time that the speed shortens.
    func after(_ seconds: Double, _ body: @escaping @Sendable () -> Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds / speed, execute: body)
    }
}
