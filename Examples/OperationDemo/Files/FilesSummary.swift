/// The totals of all files so far and the largest of them. Its size does not depend on the number of files.
struct FilesSummary: Equatable, Sendable {
    static let largestCount = 10

    private(set) var files = 0
    private(set) var lines = 0
    private(set) var words = 0
    private(set) var bytes = 0
    /// In the order of their size, and of their path where that is equal.
    private(set) var largest: [FileCount] = []

    mutating func add(_ count: FileCount) {
        files += 1
        lines += count.lines
        words += count.words
        bytes += count.bytes

        let place = largest.firstIndex { Self.isLarger(count, than: $0) } ?? largest.count
        guard place < Self.largestCount else { return }
        largest.insert(count, at: place)
        if largest.count > Self.largestCount { largest.removeLast() }
    }

    private static func isLarger(_ left: FileCount, than right: FileCount) -> Bool {
        (right.bytes, left.path) < (left.bytes, right.path)
    }
}
