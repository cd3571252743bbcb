import Dispatch

/// Where units start, of collections and of sequences.
enum UnitWorkers {
    /// Each block drains its autorelease pool, so that a long run of quick items does not fill one.
    static let queue = DispatchQueue(
        label: "OperationKit.Coordination", attributes: .concurrent, autoreleaseFrequency: .workItem)

    /// After how many units a worker goes to the end of the queue, so that others get their turn.
    static let share = 256
}
