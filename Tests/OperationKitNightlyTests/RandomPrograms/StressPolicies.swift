/// What surrounds the work of an operation.
struct StressPolicies: Equatable, Sendable {
    var conditions: [StressCondition] = []
    var timeout: StressTimeout?
    /// What it requires, of the resources that all operations of the program share.
    var resources: [StressResource] = []
    /// How long it waits for the first of them, in seconds.
    var patience: Int?
    /// Whether it requires the circuit breaker of the program.
    var hasCircuit = false

    var isEmpty: Bool { conditions.isEmpty && timeout == nil && resources.isEmpty && !hasCircuit }
}

enum StressResource: CaseIterable, Comparable, Sendable {
    case first, second
    /// For two operations at a time.
    case pair
    /// For two operations in three seconds.
    case rate

    /// How many operations have it at the same time, at most.
    var limit: Int? {
        switch self {
        case .first, .second: 1
        case .pair: 2
        case .rate: nil
        }
    }

    static let rateDuration = 3
}

struct StressCondition: Equatable, Sendable {
    enum Answer: CaseIterable, Sendable {
        case satisfied, failed, skipped
        /// It throws, which is the same as to fail.
        case throwing
    }

    enum Wait: CaseIterable, Sendable {
        case none
        /// It suspends a few times.
        case yields
        /// An action opens a gate, or it is opened when nothing else happens.
        case gate
        /// Only the cancellation of the operation lets it answer. The operation has to be cancelled by itself then.
        case untilCancelled
    }

    var answer = Answer.satisfied
    var wait = Wait.none
    var prerequisite: StressPrerequisite?
}

/// An operation that has to succeed before the evaluation.
struct StressPrerequisite: Equatable, Sendable {
    var fails = false

    /// What the log calls the runs of a condition's prerequisite.
    func key(_ id: Int, _ index: Int) -> String {
        "n\(id), condition \(index)"
    }
}

/// How long the work may take, in seconds of the program's clock.
enum StressTimeout: Equatable, Sendable {
    /// Longer than the clock is ever advanced.
    case never
    /// Work that does not end by itself takes longer. For other work it depends on when the clock is advanced.
    case seconds(Int)
    /// The operation does not begin.
    case zero

    /// In a program, the clock is never advanced that far.
    static let horizon = 100_000

    var seconds: Int {
        switch self {
        case .never: 10 * Self.horizon
        case .seconds(let seconds): seconds
        case .zero: 0
        }
    }

    /// Whether it may be over while the operation works.
    var isReachable: Bool { if case .seconds = self { true } else { false } }
}

/// What its policies make of an operation that is started and that nothing else ends.
enum StressDecision: Equatable, Sendable {
    case runs
    /// It ends as cancelled.
    case skips
    case fails(StressOutcome)
}

extension StressNode {
    /// What its policies make of it.
    var decision: StressDecision {
        for (index, condition) in policies.conditions.enumerated() {
            if condition.prerequisite?.fails == true { return .fails(.prerequisite(id, index)) }
            switch condition.answer {
            case .satisfied: break
            case .failed, .throwing: return .fails(.condition(id, index))
            case .skipped: return .skips
            }
        }
        return policies.timeout == .zero ? .fails(.timeout(id)) : .runs
    }

    var retry: StressRetry? { if case .retry(let retry) = work { retry } else { nil } }

    /// How long a delay lasts.
    var delay: Int { 1 + id % 4 }
}

/// Attempts of an operation, of which the first ones fail.
struct StressRetry: Equatable, Sendable {
    /// What makes them.
    enum Form: CaseIterable, Sendable {
        /// A `RetryOperation`.
        case retry
        /// A `RepeatOperation` that goes on until a run succeeds.
        case repetition
        /// A `HedgedOperation`.
        case hedging
    }

    var form = Form.retry
    /// How many attempts fail.
    var failures = 1
    /// How many attempts there are at most.
    var maximum = 3
    /// How long to wait before another one, in seconds. A repetition waits at least for one, from begin to begin.
    var delay = 1
    /// Whether attempts of a `RetryOperation` fail by their timeout. They do not end by themselves then.
    var areStuck = false
    /// Whether attempts end on another thread.
    var hops = false
    /// What each attempt requires.
    var resource: StressResource?

    static let attemptTimeout = 2

    /// Whether each attempt requests what the operation requires.
    var sharesRequests: Bool { form != .hedging }

    /// How many attempts there are if nothing else ends the operation, and none is hedged.
    var attempts: Int { min(failures + 1, maximum) }

    /// Whether it is known which attempt decides how the operation ends, if nothing else does.
    var isCertain: Bool {
        switch form {
        // Time may be over for an attempt before it begins.
        case .retry: !areStuck || failures >= maximum
        case .repetition: true
        // Any of those that fail may be the last one to end.
        case .hedging: failures < maximum || maximum == 1
        }
    }

    /// How the operation ends then.
    func outcome(of id: Int) -> StressOutcome { failure(of: id, after: attempts) ?? .success }

    /// What the attempt with this number fails with.
    func failure(of id: Int, after attempt: Int) -> StressOutcome? {
        attempt > failures ? nil : areStuck ? .attemptTimeout(id) : .unit(attempt)
    }
}

extension StressProgram {
    /// Whether something in it waits for time, or for the gate.
    var needsTime: Bool {
        start == .delayed || nodes.contains { !$0.policies.isEmpty || $0.leaf?.kind == .delay || $0.retry != nil }
    }

    /// Whether operations require resources, themselves or their attempts.
    var needsResources: Bool {
        nodes.contains { !$0.policies.resources.isEmpty || $0.policies.hasCircuit || $0.retry?.resource != nil }
    }

    /// How long the start of the root is delayed, in seconds.
    static let startDelay = 2
}
