import CommandLineSupport
import Foundation
import OperationKit
import OperationKitTimelines

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// `files DIRECTORY`: runs the job, prints its results and its failures, and decides the exit status.
struct FilesCommand {
    let directory: String
    let options: Options

    func run() async throws(UsageError) -> ExitStatus {
        try checkDirectory()
        let files = OutputFiles(options)
        do {
            try files.check()
            return try await count(files)
        } catch {
            Console.complain("OperationDemo: cannot write “\(error.path.printable)”: \(error.reason)")
            return .outputFailed
        }
    }

    private func count(_ files: OutputFiles) async throws(OutputError) -> ExitStatus {
        let console = Console(allowsColor: options.allowsColor)
        // With a chart on standard output there is no room for a table.
        let output = options.isMermaid ? nil : FilesOutput(console: console)
        let root = RawPath(directory)
        let job = FilesJob(directory: root, width: width) { count in output?.add(count) }
        let recording = Recording()
        if options.hasDrawing { recording.enqueue(job) }
        let interruption = Interruption { job.cancel() }
        defer { interruption.end() }
        if console.isTerminal, let output { lookAhead(in: root, for: job, output) }

        // What is thrown is the job's error, which is looked at below.
        try? await OperationQueue.serial(name: "files").run(job)
        // A file that is being written is finished.
        interruption.ignore()
        output?.end()
        let status = conclude(job.error)
        await recording.settled()
        if options.hasDrawing { try draw(recording.timeline, console, files) }
        return status
    }

    /// What was done up to an interruption is drawn, too.
    private func draw(_ timeline: OperationTimeline, _ console: Console, _ files: OutputFiles) throws(OutputError) {
        let title = "files \(directory.printable)"
        if options.isMermaid { console.write(timeline.mermaid(title: title)) }
        try files.write(timeline, title: title)
    }

    /// Reports failures in the order of the paths: the order in which they happened depends on chance.
    private func conclude(_ error: (any Error)?) -> ExitStatus {
        guard let error else { return .success }
        switch error {
        case CompoundOperationError.suboperationFailure(_, let errors):
            complain(of: errors)
            return .someFilesFailed
        case CompoundOperationError.cancelled(_, let errors, _):
            complain(of: errors)
            Console.complain("OperationDemo: interrupted; the figures are those of the files counted so far")
            return .interrupted
        default:
            Console.complain("OperationDemo: \(error.localizedDescription)")
            return .someFilesFailed
        }
    }

    private func complain(of errors: [SuboperationError]) {
        for error in errors.sorted(by: { $0.name < $1.name }) {
            Console.complain("OperationDemo: cannot read “\(error.name)”: \(error.error.localizedDescription)")
        }
    }

    /// As many files at the same time as was asked for, as far as the process may open so many.
    private var width: Int {
        let reserve = 32
        let openFiles = sysconf(Int32(_SC_OPEN_MAX))
        let limit = openFiles > 0 ? max(1, openFiles - reserve) : options.width
        return options.mode == .serial ? 1 : min(options.width, limit)
    }

    /// Counts the files ahead of the job, for the bar. That is quick: no file is opened.
    private func lookAhead(in root: RawPath, for job: FilesJob, _ output: FilesOutput) {
        DispatchQueue.global(qos: .utility).async {
            let walk = DirectoryWalk(root)
            var total = 0
            while let entry = walk.next(), !job.isCancelled {
                if case .file = entry { total += 1 }
            }
            output.expect(total)
        }
    }

    private func checkDirectory() throws(UsageError) {
        let mode: mode_t
        do {
            mode = try RawPath(directory).mode(followingLink: true)
        } catch {
            let reason = error.localizedDescription
            throw UsageError(message: "“\(directory.printable)”: \(reason): expected a directory that exists.")
        }
        if mode & S_IFMT != S_IFDIR {
            throw UsageError(message: "“\(directory.printable)” is no directory: expected one.")
        }
    }
}
