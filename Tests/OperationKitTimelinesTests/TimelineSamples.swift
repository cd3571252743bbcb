import OperationKitTestSupport
import OperationKitTimelines

extension OperationTimeline {
    typealias Times = (started: Int, finished: Int)

    /// A composite with a child of each kind: one that succeeded, one that waited and failed, one that was cancelled,
    /// one with two attempts, one that did not run, and an operation beside it that has
    /// not finished.
    static let sample = OperationTimeline(
        entries: [
            Entry(
                id: OperationID(1), name: "Sync", typeName: "CompoundOperation", started: .zero, running: .zero,
                finished: .milliseconds(3_000), outcome: .failed("1 of 6 operations failed"), isComposite: true,
                limit: 2),
            .child(2, "login", (0, 1_000)),
            .child(3, "page 1 of the very long list", (1_000, 2_500), after: [2]) {
                $0.running = .milliseconds(1_500)
                $0.waits = [
                    Wait(reason: "waiting for “db”", from: .milliseconds(1_000), to: .milliseconds(1_500))
                ]
                $0.outcome = .failed("no <connection>")
                $0.resources = ["db"]
            },
            .child(4, "page 2", (1_000, 1_500), after: [2]) { $0.resources = ["db"] },
            .child(5, "page 3 & <co>", (1_500, 2_200), after: [2]) {
                $0.cancelled = .milliseconds(2_000)
                $0.outcome = .cancelled
            },
            .child(6, "upload", (2_200, 3_000)) {
                $0.retries = [
                    Retry(attempt: 1, error: "timeout", time: .milliseconds(2_500), delay: .milliseconds(100))
                ]
            },
            .child(7, "notify", nil, after: [3]) {
                $0.started = .milliseconds(2_600)
                $0.finished = .milliseconds(2_600)
                $0.waits = [Wait(reason: "waiting for its gates", from: .milliseconds(2_600), to: .milliseconds(2_600))]
                $0.outcome = .skipped("The operation “notify” did not run, because “page 1” failed.")
            },
            Entry(id: OperationID(8), name: "other", started: .milliseconds(500), running: .milliseconds(500)),
        ], startDate: Date(timeIntervalSince1970: 1_750_000_000.25), duration: .milliseconds(3_100), droppedCount: 2)

    /// The timeline of the picture in the documentation: an import whose pages use one database after a login.
    static let picture = OperationTimeline(
        entries: [
            Entry(
                id: OperationID(1), name: "Import", typeName: "CompoundOperation", started: .zero, running: .zero,
                finished: .milliseconds(2_900), outcome: .failed("1 of 7 operations failed"), isComposite: true,
                limit: 3),
            .child(2, "log in", (0, 500)),
            .child(3, "fetch page 1", (500, 1_100), after: [2]),
            .child(4, "fetch page 2", (500, 1_500), after: [2]) {
                $0.retries = [
                    Retry(attempt: 1, error: "The connection was lost.", time: .milliseconds(900), delay: .zero)
                ]
            },
            .child(5, "fetch page 3", (500, 900), after: [2]) { $0.outcome = .failed("Not found.") },
            .child(6, "save page 1", (1_100, 1_900), after: [3]) { $0.resources = ["database"] },
            .child(7, "save page 2", (1_500, 2_700), after: [4]) {
                $0.running = .milliseconds(1_900)
                $0.waits = [
                    Wait(
                        reason: "waiting for exclusive access to “database”", from: .milliseconds(1_500),
                        to: .milliseconds(1_900))
                ]
                $0.resources = ["database"]
            },
            .child(8, "preview", (1_500, 1_800), after: [4]) {
                $0.cancelled = .milliseconds(1_700)
                $0.outcome = .cancelled
            },
        ])

    /// Timelines of all sizes, with all that can happen.
    static let all: [OperationTimeline] = [
        OperationTimeline(entries: []), .plain((0, 0)), .wide(1), .wide(10), .sample, .wide(300),
        .wide(TestExtent.choose(1_000, long: 10_000)), .picture,
    ]

    /// So many children of one composite, of which eight work at the same time.
    static func wide(_ count: Int) -> OperationTimeline {
        let end = Duration.milliseconds(4 * (count / 8 + 1))
        let composite = Entry(
            id: OperationID(1), name: "all", started: .zero, running: .zero, finished: end, outcome: .success,
            isComposite: true, limit: 8)
        let children = (0..<count).map { number -> Entry in
            let start = 4 * (number / 8)
            return .child(UInt64(number + 2), "item \(number)", (start, start + 4))
        }
        return OperationTimeline(entries: [composite] + children)
    }

    /// Operations without a composite, with the given times in milliseconds.
    static func plain(_ times: Times...) -> OperationTimeline {
        OperationTimeline(
            entries: times.enumerated().map { number, times in
                .child(UInt64(number + 1), "operation \(number + 1)", times) { ($0.parent, $0.added) = (nil, nil) }
            })
    }
}

extension OperationTimeline.Entry {
    /// A child of operation 1 that succeeded, with its times in milliseconds.
    static func child(
        _ id: UInt64, _ name: String, _ times: OperationTimeline.Times?, after dependencies: [UInt64] = [],
        _ change: (inout Self) -> Void = { _ in }
    ) -> Self {
        let started: Duration? = times.map { .milliseconds($0.started) }
        let finished: Duration? = times.map { .milliseconds($0.finished) }
        let others: [OperationID] = dependencies.map { OperationID($0) }
        var entry = Self(
            id: OperationID(id), name: name, parent: OperationID(1), added: .zero, started: started, running: started,
            finished: finished, outcome: times == nil ? nil : .success, dependencies: others)
        change(&entry)
        return entry
    }
}
