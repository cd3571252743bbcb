import OperationKitTestSupport

/// Runs one program after the other for a time, judges each, and shrinks the first that fails.
enum Soak {
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

    /// Runs programs of ever other seeds for so many seconds.
    ///
    /// - Returns: The first failure.
    @available(*, noasync)
    static func run(from seed: UInt64, seconds: Double) -> Failure? {
        let began = Date()
        var programs = 0
        while Date().timeIntervalSince(began) < seconds {
            if let failure = check(ProgramGenerator.program(seed: seed &+ UInt64(programs))) { return failure }
            programs += 1
            if programs.isMultiple(of: 10_000) {
                TestExtent.report("stress: \(programs) programs, \(residentMemory() ?? 0) MiB")
            }
        }
        TestExtent.report("stress: \(programs) programs in \(seconds) s")
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
}
