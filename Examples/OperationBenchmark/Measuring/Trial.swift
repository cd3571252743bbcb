import Dispatch

/// Some work for which everything has been made. A call does the work and returns, when its end was reached, what is to
/// be freed; this happens after the measurement, as does the freeing of what the trial itself holds.
typealias Trial = () -> Any

extension Side {
    /// A side whose time is measured. What `prepare` does does not count.
    ///
    /// Small trials are repeated until as many units have been done as asked for, so that no figure hangs on a few
    /// milliseconds.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - units: How many children, items or steps a trial has.
    ///   - least: How many units a figure should be taken from at least.
    ///   - prepare: Makes a trial.
    init(_ name: String, units: Int, least: Int = 0, prepare: @escaping () -> Trial) {
        let repetitions = max(1, least / units)
        self.init(name: name) {
            var time = Duration.zero
            for _ in 0..<repetitions {
                let trial = prepare()
                let start = ContinuousClock.now
                let leftover = trial()
                time += ContinuousClock.now - start
                withExtendedLifetime((trial, leftover)) {}
            }
            return time.nanoseconds / Double(units * repetitions)
        }
    }
}

/// Lets the thread that measures wait for an end that is told on another one.
struct End: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func come() { semaphore.signal() }
    func wait() { semaphore.wait() }
}

/// Runs a task, and waits for its end.
func inTask(_ body: @escaping @Sendable () async -> Void) {
    let end = End()
    Task.detached {
        await body()
        end.come()
    }
    end.wait()
}

extension Duration {
    var nanoseconds: Double {
        Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
    }
}
