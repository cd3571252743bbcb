// What is said about the scenarios when they run.
extension Scenario {
    /// What to look at.
    var hint: String {
        switch self {
        case .tour:
            "See that the queue is done with “naive” long before its work is: “async” and “compound” do not wait for it. "
                + "They themselves take as long as their work."
        case .sync: "See that one bar begins where the one before it ends, unless there are places for several."
        case .naive:
            "See that work overlaps on the serial queue, too: to the queue, the end of main() is the end of the work."
        case .async: "See that the serial queue waits for work that goes on after main() has returned."
        case .compound: "See that each compound lasts exactly as long as its children."
        case .cancel: "See what × marks: what had not started never runs, and what was running stops."
        case .errors:
            "See that every child runs to its end, although others fail, and that the compound fails after the last."
        case .chain: "See that one step begins where the one before it ends. What is handed over is listed below."
        case .waterfall: "See that the second one ends at the job that fails."
        case .glue: "See that “process” waits for “fetch”, whose value it is given."
        case .policies:
            "See the pauses between attempts grow, the slow one stopped, and “export” waiting for the database (░)."
        case .collection: "See how the four strategies differ: in how many bars begin together, and how long these are."
        case .criticalPath: "See ◆: the chain of steps without a gap, from the beginning to the end."
        case .files: ""
        }
    }

    /// What is to be learned. It is true of every run.
    var lesson: String? {
        switch self {
        case .tour, .sync, .async, .compound, .files: nil
        case .naive: "A queue waits for isFinished, not for work. An AsyncOperation finishes when its work says so."
        case .cancel: "What has not started never runs when it is cancelled. What runs ends when its work stops."
        case .errors: "All failures arrive together, each with the name and the index of its child."
        case .chain: "Values go from step to step, also past one, and the compiler checks that they fit."
        case .waterfall: "A failure ends the rest: later jobs are not even created."
        case .glue: "Neither class knows of the other: the binding is made where both are known."
        case .policies: "None of this is in the operations themselves."
        case .collection: "The strategy is one protocol. Work and callers are the same."
        case .criticalPath: "Only the steps on the path are worth making faster, and only until another path is longer."
        }
    }

    /// How many operations of a run are drawn.
    var maximumRows: Int {
        self == .collection ? 11 : 40
    }

    /// Whether both runs do the same work, so that their durations can be compared.
    var comparesRuns: Bool {
        switch self {
        case .tour, .sync, .async, .compound: true
        // Naive work does not count for a queue, and what was cancelled depends on the moment.
        case .naive, .cancel, .errors, .chain, .waterfall, .glue, .policies, .collection, .criticalPath, .files:
            false
        }
    }
}
