import OperationKitTestSupport

/// Shapes at scale, and random programs against an oracle. One after the other, because each of
/// them wants a processor for itself; `swift test --filter Stress` selects them. They begin with all others: they take
/// longer than any other suite, and would be the last ones on a machine with nothing else to do.
///
/// What they do can be changed by environment variables:
///
/// | Variable | Meaning |
/// |---|---|
/// | `TEST_EXTENT=long` | the shapes in their full sizes, up to a million children or dependencies, and much longer |
/// | `STRESS_SECONDS=60` | how long random programs are run; 0.5 by default, 600 in the long extent |
/// | `STRESS_SEED=42` | the only program to run, again and again; for shapes the seed of their random graphs |
@Suite("Stress", .serialized) enum Stress {}

/// What the environment asks the stress tests for.
enum StressSettings {
    /// How long random programs are run.
    static var seconds: Double {
        ProcessInfo.processInfo.environment["STRESS_SECONDS"].flatMap(Double.init) ?? TestExtent.choose(0.5, long: 600)
    }

    /// The seed that a failure has printed.
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

extension Stress {
    /// Expects that runs of a program keep all promises, whatever the external dependency is, and whether or not references to
    /// its operations are kept.
    static func expectRight(_ program: StressProgram, times: Int = 4) async {
        for isStock in [false, true] {
            for keepsReferences in times == 1 ? TestExtent.choose([isStock], long: [false, true]) : [false, true] {
                var program = program
                program.isExternalStock = isStock
                program.keepsReferences = keepsReferences
                let failure = await onThread { [program] in Soak.check(program, times: times) }
                if let failure { Issue.record("\(failure.report)") }
            }
        }
    }
}
