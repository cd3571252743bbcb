import OperationKitTestSupport

extension ScheduleWalk {
    /// What may happen from outside, and how often.
    struct Budget: Hashable {
        var additions = 0
        var limits: [Int] = []
        var suspensions = 0
        var releases = 0
        var cancellations = 0
        var takenBack = 0
        /// Whether the operation outside may become a child.
        var adoptions = 0
    }

    /// How the operation outside is called among those that a child waits for.
    static let outside = -1

    enum Stage: Int, Hashable {
        case added, waiting
        /// A worker is inside `start()`, or has been and knows that the child has not ended.
        case starting, watched
        /// It has ended before its worker could say that it goes on.
        case watchedEnded
        case alone, queued, ended

        var isBegun: Bool { self == .starting || self == .watched || self == .alone }
        var isWorker: Bool { self == .starting || self == .watched || self == .watchedEnded }
    }

    struct Child: Hashable {
        let slot: Int
        var stage = Stage.added
        var waitsFor: Set<Int> = []
        var isReleased = false
    }

    enum Step {
        case begin, cancelling, cancelled, add(dependsOn: Int?), known(Int), takeBack(Int), release(Int), isFinished(
            Int)
        case limit(Int), suspend, resume
        case workerComes
        case outsideEnds, outsideJoins
        case isWatched(Int), goesOn(Int, isLast: Bool), ends(Int), hasEnded(Int, isLast: Bool)
        case leftToQueue(Int, isLast: Bool)
    }
}
