import Foundation
import OperationKit
import OperationKitTimelines

/// What an operation that is none of the library's tells of itself, so that it is in the timeline, too.
///
/// Each method records the current time. Thread-safe.
final class Track: Sendable {
    /// The type of what goes on after the end of its operation.
    static let workType = "Work"

    let id: OperationID
    let name: String
    private let recording: Recording

    /// Creates a track.
    ///
    /// - Parameters:
    ///   - name: The name of the operation.
    ///   - typeName: What its type is called.
    ///   - recording: What it is a part of. It is not settled before the track has ended.
    init(_ name: String, typeName: String, in recording: Recording) {
        id = Self.nextID()
        self.name = name
        self.recording = recording
        recording.addStock(OperationTimeline.Entry(id: id, name: name, typeName: typeName))
    }

    /// The operation was added to a queue or a composite; there is no row for it if that is `nil`.
    func added(to parent: OperationID?) {
        recording.changeStock(id) { entry, now in
            entry.parent = parent
            entry.added = now
        }
    }

    func started() {
        recording.changeStock(id) { entry, now in
            entry.started = now
            entry.running = now
        }
    }

    func cancelled() {
        recording.changeStock(id) { entry, now in entry.cancelled = entry.cancelled ?? now }
    }

    /// The operation is finished. The first call counts.
    func finished(_ outcome: OperationTimeline.Outcome = .success) {
        recording.changeStock(id) { entry, now in
            entry.finished = now
            entry.outcome = outcome
        }
    }

    /// The operation has ended without having started. Nothing happens if it has started.
    func finishUnlessStarted() {
        recording.changeStock(id) { entry, now in
            guard entry.started == nil else { return }
            entry.finished = now
            entry.outcome = .cancelled
        }
    }

    /// Work that goes on although its operation has finished, in a row below that.
    func work() -> Track {
        let work = Track("\(name) (work)", typeName: Self.workType, in: recording)
        work.added(to: id)
        return work
    }

    /// An identifier that no operation of the library has: those count from 1.
    static func nextID() -> OperationID {
        counter.next()
    }

    private static let counter = Counter()

    private final class Counter: @unchecked Sendable {
        private let lock = NSLock()
        private var last: UInt64 = 1 << 32

        func next() -> OperationID {
            lock.withLock {
                last += 1
                return OperationID(last)
            }
        }
    }
}

/// A stock operation that appears in the timeline.
protocol TrackedOperation: Operation {
    var track: Track { get }
}
