import OperationKit

extension OperationTimeline {
    /// Draws the timeline as bars of text, with a line for each operation.
    ///
    /// ```text
    /// Sync       ◆━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  3 s
    ///   login    ◆███████████                         1 s
    ///   page 1   ◆··········░░░██████████!            1.2 s
    ///   page 2    ···········███████×                 600 ms
    ///             0 s        1 s         2 s       3 s
    /// ━ has children  █ executing  ░ waiting  · not started  ! failed  × cancelled  ◆ critical path
    /// ```
    ///
    /// Children are indented below their composite. Names are cut in the middle. The legend explains the marks that
    /// occur. All states can be told apart without colors. It needs a font of fixed width that has the characters
    /// above. Characters in names that could move the cursor are replaced.
    ///
    /// Complexity: O(n log n) in the entries.
    ///
    /// - Parameters:
    ///   - columns: How wide a line may be. Below 20 it counts as 20.
    ///   - maximumRows: How many operations there are lines for. If there are more, outer ones come before inner ones
    ///     and earlier ones before later ones, and a line says how many others there are.
    ///   - colors: Whether the escape sequences of a terminal color the bars.
    ///   - end: The time at the right end. By default that is the end of this timeline; give two timelines the same
    ///     one to compare them.
    /// - Returns: The lines, separated by line breaks, without one at the end.
    public func text(
        columns: Int = 80, maximumRows: Int = 40, colors: Bool = false, end: Duration? = nil
    ) -> String {
        if entries.isEmpty {
            let notes = ["No operations were recorded."] + (droppedNote.map { [$0] } ?? [])
            return notes.joined(separator: "\n")
        }
        return TimelineTextDrawing(
            self, columns: max(20, columns), maximumRows: max(1, maximumRows), colors: colors, end: end ?? duration
        ).lines.joined(separator: "\n")
    }

    /// Says in drawings that not all operations are there.
    var droppedNote: String? {
        switch droppedCount {
        case 0: nil
        case 1: "1 other operation was not recorded."
        default: "\(droppedCount) other operations were not recorded."
        }
    }
}
