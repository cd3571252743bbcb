import Dispatch
import Foundation

extension Operation {
    /// Makes sure that the queue to which the operation was just added knows whether it is ready.
    ///
    /// On Linux, a queue remembers `isReady` when an operation is added. If a dependency finishes at that moment, the
    /// queue may overwrite the newer answer with the older one, and never start the operation. A dependency that finishes later
    /// tells the queue.
    func announceReadiness() {
        #if !canImport(ObjectiveC)
        if isReady { didChangeValue(forKey: "isReady") }
        #endif
    }

    /// Whether the operation executes or has finished.
    var hasBeenStarted: Bool { isExecuting || isFinished }

    /// The dependencies that have not finished. Foundation keeps finished ones in `dependencies`.
    var unfinishedDependencies: [Operation] {
        dependencies.filter { !$0.isFinished }
    }
}

extension QualityOfService {
    /// The equivalents in libdispatch and in Swift concurrency. With `.unspecified`, libdispatch uses the quality of
    /// service of the thread that enqueues the work.
    var equivalents: (dispatch: DispatchQoS, priority: TaskPriority) {
        switch self {
        case .userInteractive: (.userInteractive, .high)
        case .userInitiated: (.userInitiated, .userInitiated)
        case .utility: (.utility, .utility)
        case .background: (.background, .background)
        // Also cases of future systems.
        default: (.unspecified, .medium)
        }
    }
}

/// Takes chains of operations, and operations inside others, apart one by one, where releasing the last one would release them by nested
/// calls.
///
/// An operation holds its dependencies for good, so the end of a chain holds all of it. Foundation would free a chain
/// recursively, and overflow the stack: that of a worker thread at a fraction of what the main thread's can bear. So would composites
/// that hold others, at any depth. Those that only a closure of the user's holds are freed by nested calls.
///
/// On Apple platforms only composites are: subclasses of `NSObject` count references as Objective-C does, so
/// `isKnownUniquelyReferenced` is always false, and `AsyncOperation` has no `deinit`. How a chain is freed is up to `NSOperation`
/// then, whose documentation does not say whether it recurses; it was not measured. Threads of dispatch queues have 512 KiB of stack
/// there. Chains inside compounds and macros do not depend on it, because a child removes its dependencies when it has ended. That
/// leaves chains that were put on an `OperationQueue`, or were never run.
final class DependencyRelease: @unchecked Sendable {
    private var operations: [Operation]

    deinit {
        DependencyRelease.release(&operations)
    }

    /// The operations that the current thread is letting go of.
    private static let key = makeThreadKey()

    /// Lets go of operations without recursion. The dependencies of those without other references are detached before they go. What
    /// they let go of here in turn, because they are freed, follows when they are gone.
    static func release(_ operations: inout [Operation]) {
        var open = exchange(&operations, with: [])
        if let outer = unsafe pthread_getspecific(key) {
            return unsafe outer.assumingMemoryBound(to: [Operation].self).pointee += open
        }
        unsafe withUnsafeMutablePointer(to: &open) { open in
            unsafe pthread_setspecific(key, open)
            while var operation = unsafe open.pointee.popLast() {
                guard isKnownUniquelyReferenced(&operation) else { continue }
                let dependencies = operation.dependencies
                for dependency in dependencies { operation.removeDependency(dependency) }
                unsafe open.pointee += dependencies
            }
            pthread_setspecific(key, nil)
        }
    }

    /// Called while an operation is freed, with its dependencies.
    ///
    /// What this makes has to outlive the operation's own list of dependencies, so it is handed to Foundation as the
    /// operation's completion block, which is destroyed after them. Detaching them one by one instead would make
    /// Foundation ask the operation for `isReady`: code of a subclass whose `deinit` has run, and which may reach for
    /// what is gone.
    ///
    /// Those that have not finished are the exception. They hold the operation unretained, and would reach for it
    /// later. One that finishes at this very moment may do so still: as with every operation of Foundation's, the code that
    /// drops an operation that was not started sees to it that its dependencies do not finish meanwhile.
    init(_ dependencies: [Operation], remove: (Operation) -> Void) {
        for dependency in dependencies where !dependency.isFinished { remove(dependency) }
        operations = dependencies
    }
}
