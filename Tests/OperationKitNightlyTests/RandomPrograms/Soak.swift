import Foundation
import OperationKitTestSupport
import Testing

/// Runs one program after the other for a time, judges each, and shrinks the first that fails.
final class Soak: @unchecked Sendable {
    struct Failure {
        let program: StressProgram
        let violations: [String]
        let shrunk: StressProgram
        let shrunkViolations: [String]

        /// All that is needed to look into it.
        var report: String {
            """
            A program failed. Run it again with STRESS_SEED=\(program.seed):
            - \(violations.joined(separator: "\n- "))
            \(program)
            What is left of it when it is shrunk fails with:
            - \(shrunkViolations.joined(separator: "\n- "))
            \(shrunk)
            """
        }
    }

    private let began = Date()
    private let seconds: Double
    private var programs = 0
    private var operations = 0
    private var lastReport = Date()
    /// At the reports, in MiB.
    private var memory: [Int] = []
    private static let reportInterval: TimeInterval = 10

    init(seconds: Double) {
        self.seconds = seconds
    }

    /// Runs programs of ever other seeds, until the time is over.
    ///
    /// - Returns: The first failure.
    @available(*, noasync)
    func run(from seed: UInt64) -> Failure? {
        memory = [residentMemory() ?? 0]
        while Date().timeIntervalSince(began) < seconds {
            let program = ProgramGenerator.program(seed: seed &+ UInt64(programs))
            if let failure = Soak.check(program) { return failure }
            programs += 1
            operations += program.nodes.count
            if Date().timeIntervalSince(lastReport) >= Soak.reportInterval {
                lastReport = Date()
                report()
            }
        }
        summarize()
        return nil
    }

    /// Runs a program a number of times, and shrinks it if it fails.
    @available(*, noasync)
    static func check(_ program: StressProgram, times: Int = 1, hangTimeout: TimeInterval = 120) -> Failure? {
        for _ in 0..<times {
            let violations = violations(of: program, hangTimeout: hangTimeout)
            if violations.isEmpty { continue }
            // A report that comes before the shrinking survives if that hangs or crashes.
            print("STRESS_SEED=\(program.seed) failed: \(violations)\n\(program)")
            var last = violations
            let budget = Date(timeIntervalSinceNow: TestExtent.choose(10, long: 60))
            var shrinker = Shrinker { candidate in
                for _ in 0..<30 where Date() < budget {
                    let violations = Self.violations(of: candidate, hangTimeout: 3)
                    if !violations.isEmpty {
                        last = violations
                        return true
                    }
                }
                return false
            }
            let shrunk = shrinker.shrink(program)
            return Failure(program: program, violations: violations, shrunk: shrunk, shrunkViolations: last)
        }
        return nil
    }

    @available(*, noasync)
    private static func violations(of program: StressProgram, hangTimeout: TimeInterval) -> [String] {
        ProgramOracle.violations(of: program, ProgramRun.events(of: program, hangTimeout: hangTimeout))
    }

    private func report() {
        memory.append(residentMemory() ?? 0)
        let elapsed = Date().timeIntervalSince(began)
        TestExtent.report(
            "stress: \(elapsed.short) s, \(programs) programs, \(operations) operations, \(memory.last ?? 0) MiB")
    }

    private func summarize() {
        memory.append(residentMemory() ?? 0)
        let elapsed = Date().timeIntervalSince(began)
        let rate = Double(programs) / elapsed
        TestExtent.report(
            """
            stress: \(programs) programs with \(operations) operations in \(elapsed.short) s (\(rate.short) programs/s), \
            MiB every \(Int(Soak.reportInterval)) s: \(memory.map(String.init).joined(separator: " "))
            """)
    }
}
