/// How many operations wait and how many work, by their events.
struct Tally: Sendable {
    private var waiting: Set<Subject> = []
    private var working: Set<Subject> = []

    mutating func note(_ event: Event) {
        switch event.stage {
        case .enqueued:
            waiting.insert(event.subject)
        case .started:
            waiting.remove(event.subject)
            working.insert(event.subject)
        case .workFinished, .workFailed, .workCancelled:
            working.remove(event.subject)
        case .completion:
            waiting.remove(event.subject)
        case .mainReturned, .cancelCalled, .asyncCompletion:
            break
        }
    }

    var text: String {
        "\(working.count) working, \(waiting.count) waiting"
    }
}
