import OperationKitTestSupport

@testable import OperationKit

extension ScheduleExplorer {
    /// What other threads may do, and how often.
    struct Budget: Hashable {
        var additions = 0
        var limits: [Int] = []
        var suspensions = 0
        var releases = 0
        var cancellations = 0
        var takenBack = 0
        /// Whether the external dependency may become a child.
        var adoptions = 0
        /// How many ends of children are reported as progress before they count.
        var reports = 0
    }

    /// What the external dependency is called among those that a child waits for.
    static let external = -1

    enum Stage: Int, Hashable {
        case added, waiting
        /// A worker is inside `start()`, or has been and knows that the child has not ended.
        case starting, watched
        /// It has ended before its worker could say that it goes on.
        case watchedEnded
        case alone, queued, ended

        var isStarted: Bool { self == .starting || self == .watched || self == .alone }
        var isWorker: Bool { self == .starting || self == .watched || self == .watchedEnded }
    }

    struct Child: Hashable {
        let slot: Int
        var stage = Stage.added
        var waitsFor: Set<Int> = []
        var ignoresDependencies = false
        /// Whether its end is being reported.
        var isEnding = false
        /// Whether it was given to the queue without a worker, which has not taken it yet.
        var isHandedOver = false
        /// Whether the queue, which it was handed, can start it.
        var isReadyOnQueue = true

        var mayBeEnding: Bool {
            switch stage {
            case .starting, .watched, .alone, .queued: !isEnding
            case .added, .waiting, .watchedEnded, .ended: false
            }
        }
    }

    enum Step {
        case begin, cancelling, cancelled, add(dependsOn: Int?), registered(Int), takeBack(Int), release(Int),
            isFinished(
                Int)
        case limit(Int), suspend, resume
        case workerComes
        case externalEnds, externalJoins
        case isWatched(Int), goesOn(Int, isLast: Bool), ending(Int), ends(Int), hasEnded(Int, isLast: Bool)
        case handedToQueue(Int, isLast: Bool), handedBack(Int), waitsOnQueue(Int)
    }
}

extension Operation {
    /// Stands for every child: the state machine does not look at its operations.
    static let placeholder = Operation()
}

extension ReadinessStateMachine {
    mutating func addedChild() -> Int { table.insert(.placeholder) }
}
