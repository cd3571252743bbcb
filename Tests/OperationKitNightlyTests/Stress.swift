import OperationKitTestSupport

/// Shapes at scale, and random programs. One after the other, because each of them wants a processor for itself;
/// `swift test --filter Stress` selects them. They begin with all others: they take longer than any other suite, and would
/// be the last ones on a machine with nothing else to do.
@Suite("Stress", .serialized) enum Stress {}

/// What environment variables ask the stress tests for.
enum StressSettings {
    /// How long random programs are run.
    static var seconds: Double {
        ProcessInfo.processInfo.environment["STRESS_SECONDS"].flatMap(Double.init) ?? TestExtent.choose(0.5, long: 600)
    }

    /// The seed that a failure has printed: that of the only program to run, again and again, or of all random graphs.
    static var seed: UInt64? { ProcessInfo.processInfo.environment["STRESS_SEED"].flatMap { UInt64($0) } }
}

/// The memory of this process that is in the machine's memory, without the pages of files, which come as code is used for
/// the first time. In MiB, or `nil` where the system does not tell in this way.
///
/// In a long run it grows by some 200 bytes for each error that is thrown: Testing keeps its backtrace until the run is over.
func residentMemory() -> Int? {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
    let fields = text.split(separator: " ")
    guard fields.count > 2, let resident = Int(fields[1]), let shared = Int(fields[2]) else { return nil }
    return (resident - shared) * 4096 / (1 << 20)
}
