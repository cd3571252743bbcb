import Foundation

/// An operation of the private queue that begins children. It ends when it leaves, or when the child ends whose place
/// it keeps.
final class ChildWorker: AsyncOperation, @unchecked Sendable {
    private let scheduler: ChildScheduler

    init(_ scheduler: ChildScheduler) {
        self.scheduler = scheduler
        super.init()
    }

    override func main() {
        scheduler.work(self)
    }
}
