/// An operation as the log knows it.
struct Subject: Hashable, Sendable {
    let name: String
    /// Counted from 0 in the order in which the operations were created; decides the color.
    let number: Int
}

/// A point in the life of an operation.
enum Stage: String, CaseIterable, Sendable {
    case enqueued
    case started
    case progress
    case mainReturned = "main returned"
    case cancelCalled = "cancel called"
    case workFinished = "work finished"
    case workFailed = "work failed"
    case workCancelled = "work cancelled"
    case asyncCompletion = "async completion"
    case completion

    /// Whether the work is over, in whatever way.
    var endsWork: Bool {
        switch self {
        case .workFinished, .workFailed, .workCancelled: true
        case .enqueued, .started, .progress, .mainReturned, .cancelCalled, .asyncCompletion, .completion: false
        }
    }
}

/// Something that happened to an operation.
struct Event: Equatable, Sendable {
    let time: Duration
    let subject: Subject
    let stage: Stage
    let detail: String?
}

extension Event {
    /// What is to be said about an event in the light of what happened to the same operation before.
    ///
    /// This is how the demo finds out a naive operation: not because it knows which one is, but by the order of its events.
    static func remark(on stage: Stage, at time: Duration, after earlier: [Event]) -> String? {
        if stage == .completion, earlier.contains(where: { $0.stage == .started }),
            !earlier.contains(where: { $0.stage.endsWork })
        {
            return "although its work is still going on"
        }
        if stage.endsWork, let completion = earlier.last(where: { $0.stage == .completion }) {
            // Differences of what is printed, so that the reader's sums come out.
            let early = time.milliseconds - completion.time.milliseconds
            return "completion came \(early) ms before its work finished"
        }
        return nil
    }
}
