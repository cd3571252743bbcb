import Foundation

/// The events of a run by what they concern, with their positions.
struct LogIndex {
    let events: [StressEvent]
    private(set) var built: Set<Int> = []
    private(set) var began: [Int: [Int]] = [:]
    private(set) var ended: [Int: [Int]] = [:]
    private(set) var completed: [Int: [(position: Int, outcome: StressOutcome, isCancelled: Bool)]] = [:]
    private(set) var finished: [Int: [Int]] = [:]
    private(set) var externalEnded: Int?
    /// By action: whether it was accepted, and when it was over.
    private(set) var isAccepted: [Int: Bool] = [:]
    private(set) var acted: [Int: Int] = [:]
    private(set) var awaited: [(position: Int, outcome: StressOutcome)] = []
    /// By node, in the order of the log.
    private(set) var signals: [Int: [(position: Int, signal: StressSignal)]] = [:]
    private(set) var rest: [Int: (isFinished: Bool, isExecuting: Bool, isCancelled: Bool)] = [:]

    init(_ events: [StressEvent]) {
        self.events = events
        for (position, event) in events.enumerated() {
            switch event {
            case .built(let id): built.insert(id)
            case .began(let id): began[id, default: []].append(position)
            case .ended(let id): ended[id, default: []].append(position)
            case .completed(let id, let outcome, let isCancelled):
                completed[id, default: []].append((position, outcome, isCancelled))
            case .finished(let id): finished[id, default: []].append(position)
            case .externalEnded: externalEnded = position
            case .acted(let action, let isAccepted):
                self.isAccepted[action] = isAccepted
                acted[action] = position
            case .awaited(let outcome): awaited.append((position, outcome))
            case .rest(let id, let isFinished, let isExecuting, let isCancelled):
                rest[id] = (isFinished, isExecuting, isCancelled)
            case .emitted(let id, let signal): signals[id, default: []].append((position, signal))
            case .hung, .reported, .leaked: break
            }
        }
    }

    /// What the operation reported.
    func outcome(of id: Int) -> StressOutcome? { completed[id]?.first?.outcome }
}
