import Foundation
import OperationKit
import OperationKitProcess

let help = """
    Usage: Builder [--keep-going] [FILE]

    Builds the targets of FILE, Buildfile unless it is given, as many at a time as the machine has processors.
    A target is a line such as “app: main.o util.o”, with what it needs, and an indented shell script below it.
      --keep-going  build what does not need a target that has failed
    """

func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }  // Unbuffered.
func end(_ message: String, _ status: Int32) -> Never {
    say(message)
    exit(status)
}

let keepsGoing = CommandLine.arguments.contains("--keep-going")
let arguments = CommandLine.arguments.dropFirst().filter { $0 != "--keep-going" }
if arguments.contains("--help") { end(help, 0) }
let file = arguments.first ?? "Buildfile"
guard arguments.count < 2, let text = try? String(contentsOfFile: file, encoding: .utf8) else {
    end("There is no file “\(file)” to read.\n\n\(help)", 64)
}

// Each target becomes an operation; the commands below it are one script.
var targets: [(name: String, operation: ProcessOperation, needs: [Substring])] = []
for block in text.split(separator: /\n(?=[^\s#])/) {
    let lines = block.split(separator: "\n").filter { !$0.hasPrefix("#") }
    guard let head = lines.first?.split(separator: ":", maxSplits: 1), !head.isEmpty else { continue }
    let name = head[0].trimmingCharacters(in: .whitespaces)
    let script = "set -e\n" + lines.dropFirst().joined(separator: "\n")
    let operation = ProcessOperation("sh", ["-c", script], name: name)
    operation.standardOutput = .lines { say("\(name): \($0)") }
    operation.asyncCompletionBlock = { if $0 == nil { say("built \(name)") } }
    targets.append((name, operation, head.count > 1 ? head[1].split(separator: " ") : []))
}
for target in targets {
    for need in target.needs {
        if need == target.name { end("“\(need)” needs itself.", 64) }
        guard let needed = targets.first(where: { $0.name == need }) else { end("Nothing builds “\(need)”.", 64) }
        target.operation.requireSuccess(of: needed.operation)
    }
}

let build = CompoundOperation(
    name: file, operations: targets.map(\.operation),
    maxConcurrentOperationCount: ProcessInfo.processInfo.activeProcessorCount,
    failurePolicy: keepsGoing ? .continueAll : .cancelRemaining)
signal(SIGINT, SIG_IGN)
let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
// The second time it ends immediately, whatever runs.
interrupt.setEventHandler { if build.isCancelled { exit(130) } else { build.cancel() } }
interrupt.activate()
do {
    try await OperationQueue().run(build)
} catch {
    end(error.localizedDescription, build.isCancelled ? 130 : 1)
}
