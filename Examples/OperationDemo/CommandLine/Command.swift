/// What the arguments ask for.
enum Command: Equatable, Sendable {
    case help
    case version
    case list
    case scenario(Scenario, Options)
    case files(directory: String, Options)
    case interactive(Options)
}

/// The scenarios by name, `files` included: it differs from the others only in that it takes a directory.
enum Scenario: String, CaseIterable, Sendable {
    case tour, sync, naive, async, compound, cancel, errors, chain, waterfall, glue, policies, collection
    case criticalPath = "critical-path"
    case files

    var summary: String {
        switch self {
        case .tour: "one operation of each kind, on a serial and on a concurrent queue (the default)"
        case .sync: "three synchronous operations"
        case .naive: "three operations whose main() returns before their work is done"
        case .async: "three correct asynchronous operations"
        case .compound: "two compounds of three operations each"
        case .cancel: "cancelling before the start, in flight, and a whole compound"
        case .errors: "the report of a compound whose children fail, as Swift error and as NSError"
        case .chain: "a macro: choose a photo, upload it, clean up with the first output"
        case .waterfall: "request, response, parse, model: once to the end, and once with a failure"
        case .glue: "two plain classes, and a value that is bound from one to the other"
        case .policies: "a service is called again when it fails, one step takes too long, and two exclude each other"
        case .collection: "24 images, item by item and batch by batch, in sequence and in parallel"
        case .criticalPath: "a build of eight steps, and those that decide how long it takes"
        case .files: "count lines, words and bytes of every file below DIRECTORY"
        }
    }

    /// How the scenario is called on the command line.
    var synopsis: String {
        self == .files ? "files DIRECTORY" : rawValue
    }

    /// The queues to run on when `--mode` does not say. One run is enough where a second would only repeat the report.
    var defaultMode: Mode {
        switch self {
        case .tour, .sync, .naive, .async, .compound, .cancel, .collection: .both
        case .errors, .chain, .waterfall, .glue, .policies, .criticalPath, .files: .concurrent
        }
    }
}

/// The kinds of queue to run a scenario on.
enum Mode: String, CaseIterable, Sendable {
    case serial, concurrent, both
}

/// What can be set for every scenario.
struct Options: Equatable, Sendable {
    static let widths = 1...256
    static let speeds = 0.01...1000.0

    var mode: Mode?
    var width = 4
    var speed = 1.0
    var allowsColor = true
    var showsLog = false
    /// Whether standard output is a chart for Mermaid, and nothing else.
    var isMermaid = false
    /// The paths of the files to write.
    var svg: String?
    var trace: String?

    /// Whether something is drawn that has to be recorded.
    var hasDrawing: Bool { isMermaid || svg != nil || trace != nil }
}

/// What the process ends with. The numbers above 1 are those of `sysexits.h` and of the shells.
enum ExitStatus: Int32, Sendable {
    case success = 0
    case someFilesFailed = 1
    case usage = 64
    case outputFailed = 74
    case interrupted = 130
    case brokenPipe = 141
    case terminated = 143
}
