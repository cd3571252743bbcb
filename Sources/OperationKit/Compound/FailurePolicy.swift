/// What the first failure among several operations, items or batches means for the others.
public enum FailurePolicy: Sendable {
    /// Nothing: all of them run, and all errors are reported.
    case continueAll
    /// The first failure cancels the others, and those that are added later. The failures are reported, the cancellations
    /// are not.
    case cancelRemaining
}
