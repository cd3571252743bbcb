import Foundation
import OperationKit
import OperationKitProcess
import OperationKitTimelines

let help = """
    Usage: Pipeline [--report FILE.svg] FILE…

    Compresses each FILE with gzip, beside it, and prints a checksum of what has become of it. A file that fails
    does not stop the others.
      --report FILE.svg  draw when each step ran
    """

var arguments = Array(CommandLine.arguments.dropFirst())
if arguments.isEmpty || arguments.contains("--help") {
    print(help)
    exit(arguments.isEmpty ? 64 : 0)
}
var report: String?
if let index = arguments.firstIndex(of: "--report"), index + 1 < arguments.count {
    report = arguments[index + 1]
    arguments.removeSubrange(index...index + 1)
}

let (all, recorder) = (CompoundOperation(name: "pipeline", maxConcurrentOperationCount: 4), OperationTimelineRecorder())
all.addObserver(recorder)
for file in arguments {
    let compress = ProcessOperation("gzip", ["-kf", "--", file], name: "compress \(file)")
    let hash = ProcessOperation("cksum", ["--", file + ".gz"], name: "hash \(file)")
    hash.requireSuccess(of: compress)
    hash.asyncCompletionBlock = { error in
        guard error == nil, let output = hash.output else { return }
        try? FileHandle.standardOutput.write(contentsOf: output.standardOutput)
    }
    try all.addOperations([compress, hash])
}

signal(SIGINT, SIG_IGN)
let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
interrupt.setEventHandler { all.cancel() }
interrupt.activate()
var status: Int32 = 0
do {
    try await OperationQueue().run(all)
} catch {
    let failures = (error as? CompoundOperationError)?.suboperationErrors ?? []
    for failure in failures { print("\(failure.name): \(failure.error.localizedDescription)") }
    status = all.isCancelled ? 130 : 1
}
if let report {
    do {
        try Data(recorder.timeline.svg().utf8).write(to: URL(fileURLWithPath: report))
        print("drawn in \(report)")
    } catch {
        print("not drawn in \(report): \(error.localizedDescription)")
        status = max(status, 1)
    }
}
print(recorder.timeline.summary)
exit(status)
