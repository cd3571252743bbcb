import Foundation

/// The events of a run by what they concern, with their positions.
struct LogIndex {
    let events: [StressEvent]
    private(set) var built: Set<Int> = []
    /// By node, when it was made.
    private(set) var made: [Int: Int] = [:]
    private(set) var began: [Int: [Int]] = [:]
    private(set) var ended: [Int: [Int]] = [:]
    private(set) var completed: [Int: [(position: Int, outcome: StressOutcome, isCancelled: Bool)]] = [:]
    private(set) var finished: [Int: [Int]] = [:]
    /// By collection and unit.
    private(set) var units: [Int: [Int: (began: [Int], ended: [Int])]] = [:]
    private(set) var firstUnit: [Int: Int] = [:]
    private(set) var lastUnit: [Int: Int] = [:]
    private(set) var externalEnded: Int?
    /// By action: whether it was accepted, and when it was over.
    private(set) var isAccepted: [Int: Bool] = [:]
    private(set) var acted: [Int: Int] = [:]
    private(set) var awaited: [(position: Int, outcome: StressOutcome)] = []
    /// By node, in the order of the log.
    private(set) var progress: [Int: [(fraction: Double, hasEnded: Bool)]] = [:]
    private(set) var shared: (leaves: [Int], fraction: Double)?
    /// By node and condition.
    private(set) var evaluations: [Int: [Int: (began: [Int], ended: [Int])]] = [:]
    /// By what the log calls them.
    private(set) var prerequisites: [String: (began: [Int], ended: [(position: Int, isCancelled: Bool)])] = [:]
    private var advancing: [(position: Int, time: Int)] = []
    private var advanced: [(position: Int, time: Int)] = []
    /// By node, in the order of the log.
    private(set) var signals: [Int: [(position: Int, signal: StressSignal)]] = [:]
    private(set) var rest: [Int: (isFinished: Bool, isExecuting: Bool, isCancelled: Bool)] = [:]

    init(_ events: [StressEvent]) {
        self.events = events
        for (position, event) in events.enumerated() {
            switch event {
            case .built(let id):
                built.insert(id)
                made[id] = position
            case .began(let id): began[id, default: []].append(position)
            case .ended(let id): ended[id, default: []].append(position)
            case .unitBegan(let id, let unit):
                units[id, default: [:]][unit, default: ([], [])].began.append(position)
                firstUnit[id] = firstUnit[id] ?? position
            case .unitEnded(let id, let unit):
                units[id, default: [:]][unit, default: ([], [])].ended.append(position)
                lastUnit[id] = position
            case .completed(let id, let outcome, let isCancelled):
                completed[id, default: []].append((position, outcome, isCancelled))
            case .finished(let id): finished[id, default: []].append(position)
            case .externalEnded: externalEnded = position
            case .acted(let action, let isAccepted):
                self.isAccepted[action] = isAccepted
                acted[action] = position
            case .awaited(let outcome): awaited.append((position, outcome))
            case .progressed(let id, let fraction, let hasEnded):
                progress[id, default: []].append((fraction, hasEnded))
            case .shared(let leaves, let fraction): shared = (leaves, fraction)
            case .rest(let id, let isFinished, let isExecuting, let isCancelled):
                rest[id] = (isFinished, isExecuting, isCancelled)
            case .emitted(let id, let signal): signals[id, default: []].append((position, signal))
            case .conditionBegan(let id, let index):
                evaluations[id, default: [:]][index, default: ([], [])].began.append(position)
            case .conditionEnded(let id, let index):
                evaluations[id, default: [:]][index, default: ([], [])].ended.append(position)
            case .prerequisiteBegan(let key): prerequisites[key, default: ([], [])].began.append(position)
            case .prerequisiteEnded(let key, let isCancelled):
                prerequisites[key, default: ([], [])].ended.append((position, isCancelled))
            case .advancing(let time): advancing.append((position, time))
            case .advanced(let time): advanced.append((position, time))
            case .hung, .reported, .leaked: break
            }
        }
    }

    /// The latest that the program's clock may have shown when this was written down.
    func latestTime(at position: Int) -> Int {
        advancing.last { $0.position < position }?.time ?? 0
    }

    /// The earliest that the program's clock may have shown when this was written down.
    func earliestTime(at position: Int) -> Int {
        advanced.last { $0.position < position }?.time ?? 0
    }

    /// What the operation reported.
    func outcome(of id: Int) -> StressOutcome? { completed[id]?.first?.outcome }
}
