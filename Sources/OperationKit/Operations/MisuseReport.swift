import Dispatch
import Foundation

/// A mistake that was noticed while the program runs.
public enum MisuseReport: Sendable, CustomStringConvertible {
    /// An operation was released while it was executing, so that it never finished.
    case released(UnfinishedOperation)
    /// The last way to end an operation, an item or a batch was released without having been used, and it was ended with
    /// this error. The operation is `nil` for items, batches and runs.
    case lostFinish(LostFinishError, operation: UnfinishedOperation?)
    /// An operation of this class was finished after the default `main()`, which `super.main()` calls, had finished it.
    /// Debug builds of the library report it, once for each class.
    case finishedAfterSuperMain(AsyncOperation.Type)
    /// An operation was told to require the success of another one, or bound to it, when it had started, so that this is
    /// ignored. Both are given by their names.
    case lateDependency(operation: String, dependency: String)
    /// An operation was given a policy, such as a timeout, when it had started, so that this is ignored.
    case latePolicy(operation: String, policy: String)

    /// A sentence, and the call stack of the start if it was recorded.
    public var description: String {
        switch self {
        case .released(let operation):
            operation.description
        case .lostFinish(let error, let operation):
            text(
                "OperationKit: " + error.eventText
                    + (operation.map { " It was started on \($0.origin), \($0.age.shortText) earlier." } ?? ""),
                above: operation?.callStack ?? [])
        case .finishedAfterSuperMain(let type):
            "OperationKit: The call of finish had no effect on an operation of the class “\(type)”, because the default main() had finished it before. Override it, and don't call super.main() or super.main(input:)."
        case .lateDependency(let operation, let dependency):
            "OperationKit: The operation “\(operation)” had started when it was bound to “\(dependency)”, or told to require the success of that one. That is ignored. Do it before the operation is added to a queue."
        case .latePolicy(let operation, let policy):
            "OperationKit: The operation “\(operation)” had started when it was given \(policy). That is ignored. Do it before the operation is added to a queue."
        }
    }
}

/// Writes a line. One that cannot be written is lost: the `write(_:)` of Foundation would end the program, and so would the signal of
/// a pipe without a reader.
package func writeToStandardError(_ line: String) {
    #if canImport(Darwin)
    // There, the signal goes to any thread.
    fcntl(STDERR_FILENO, F_SETNOSIGPIPE, 1)
    #else
    var (signals, previous, time) = (sigset_t(), sigset_t(), timespec())
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, &previous)
    defer {
        // The signal goes to this thread, and is taken if it has come.
        unsafe sigtimedwait(&signals, nil, &time)
        unsafe pthread_sigmask(SIG_SETMASK, &previous, nil)
    }
    #endif
    try? FileHandle.standardError.write(contentsOf: Data("\(line)\n".utf8))
}

/// Hands reports to the handler, one after the other.
final class MisuseReporter: Sendable {
    static let shared = MisuseReporter()

    typealias Handler = @Sendable (MisuseReport) -> Void

    let queue = DispatchQueue(label: "MisuseReport")
    private let current = Locked<Handler?> {
        writeToStandardError("\($0)")
    }

    var handler: Handler? {
        get { current.withLock { $0 } }
        set {
            // Release the old handler after unlocking; its deinitializers may run arbitrary code.
            _ = current.withLock { exchange(&$0, with: newValue) }
        }
    }

    /// Reports asynchronously: the reporting thread may hold arbitrary locks.
    func report(_ report: MisuseReport) {
        queue.async { self.handler?(report) }
    }
}

#if DEBUG
// A subclass that calls `super.main()` is finished there. If its work calls `finish` later, that has no effect, and what
// depends on the operation has started too early. Debug builds notice that.
extension AsyncOperation {
    private static let reportedClasses = Locked<Set<ObjectIdentifier>>([])

    /// A call of `finish` had no effect. Each class is reported once.
    func reportFinishAfterDefaultMain() {
        let type = type(of: self)
        guard type != AsyncOperation.self, withState({ $0.hasFinishedInDefaultMain }) else { return }
        withState { $0.wasFinishedAfterDefaultMain = true }
        let isFirst = AsyncOperation.reportedClasses.withLock { $0.insert(ObjectIdentifier(type)).inserted }
        if isFirst { ExecutionRecording.report(.finishedAfterSuperMain(type)) }
    }
}
#endif

extension AsyncOperation {
    /// What the default implementations of `main()` and `main(input:)` do.
    func finishInDefaultMain() {
        #if DEBUG
        // If it is called by hand before the start, the operation has not finished.
        if finish(), isFinished { withState { $0.hasFinishedInDefaultMain = true } }
        #else
        finish()
        #endif
    }

    /// Whether `finish` was called after `super.main()` had finished the operation. Debug builds know.
    package var wasFinishedAfterDefaultMain: Bool {
        #if DEBUG
        withState { $0.wasFinishedAfterDefaultMain }
        #else
        false
        #endif
    }
}
