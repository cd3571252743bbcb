import Foundation
import OperationKit

/// Counts every file below a directory: one child operation for each.
///
/// The children are created as they are needed, each by the end of an earlier one. So the job holds a bounded number of them,
/// however many files there are. Its error has what went wrong with all of them.
final class FilesJob: CompoundOperation, @unchecked Sendable {
    typealias Handler = @Sendable (_ count: FileCount) -> Void

    private let handler: Handler
    private let window: Int
    private let lock = NSLock()
    private let walk: DirectoryWalk

    /// Creates a job.
    ///
    /// - Parameters:
    ///   - directory: The directory that is searched.
    ///   - width: The maximum number of files to count at the same time.
    ///   - handler: Called with each file that was counted, on any thread, several at a time.
    init(directory: RawPath, width: Int, handler: @escaping Handler) {
        walk = DirectoryWalk(directory)
        self.handler = handler
        // As many again as can run, so that there is always one ready.
        window = 2 * width
        super.init(
            name: "files", operations: [], maxConcurrentOperationCount: width, failurePolicy: .continueAll)
    }

    override func prepare() throws {
        for _ in 0..<window { try addNext() }
    }

    private func addNext() throws {
        guard !isCancelled, let child = lock.withLock({ nextChild() }) else { return }
        // Before the child is finished, so the job cannot be: there is always one more child to wait for.
        child.asyncCompletionBlock = { [self, unowned child] _ in
            if let count = child.count { handler(count) }
            do {
                try addNext()
            } catch {
                preconditionFailure("A compound takes children while one of them is unfinished: \(error)")
            }
        }
        try addOperation(child)
    }

    private func nextChild() -> CountFile? {
        switch walk.next() {
        case .file(let path): CountFile(path)
        case .failure(let path, let error): CountFile(path, failure: error)
        case nil: nil
        }
    }
}
