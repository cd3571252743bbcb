#if DEBUG
import OperationKitTestSupport

@testable import OperationKit

/// An operation in a run of virtual threads whose closure gives away copies of what it is handed.
final class HandleSubject: ExplorationSubject, @unchecked Sendable {
    enum Kind: CaseIterable {
        case block, typed
        /// One that ends when its closure returns, which is at the end of the run.
        case throwing
    }

    /// What the closure was handed.
    private struct Copy: Sendable {
        let onCancel: @Sendable (@escaping @Sendable () -> Void) -> Void
        let finish: @Sendable (any Error) -> Void
    }

    private struct Record {
        /// Empty after the closure has begun only if all were taken.
        var copies: [Copy]?
        var registered: [String] = []
        var called: [String] = []
        /// Registered when the operation was cancelled already, and not called when that had returned.
        var missed: [String] = []
        var completions: [String] = []
        var isFinishCalled = false
        var mayReturn = false
    }

    let operation: Operation
    private let holdsCopy: Bool
    private let record = Shared(Record())

    /// Creates an operation that has not started.
    ///
    /// - Parameters:
    ///   - kind: What kind of operation it is.
    ///   - copies: How many copies are given away.
    ///   - holdsCopy: Whether there is another one, by which the run is ended.
    init(_ kind: Kind, copies: Int, holdsCopy: Bool = false) {
        self.holdsCopy = holdsCopy
        let record = record
        let give = { @Sendable (copy: Copy) in
            VirtualThread.place("closure")
            record.change { $0.copies = Array(repeating: copy, count: copies + (holdsCopy ? 1 : 0)) }
        }
        switch kind {
        case .block:
            operation = AsyncBlockOperation(name: "block") { finish in
                give(Copy(onCancel: finish.onCancel, finish: finish.callAsFunction))
            }
        case .typed:
            operation = IOBlockOperation<Void, Int>.finishing(name: "block") { _, finish in
                give(Copy(onCancel: finish.onCancel, finish: finish.callAsFunction))
            }
        case .throwing:
            operation = ThrowingBlockOperation(name: "block") { work in
                give(Copy(onCancel: work.onCancel, finish: { _ in }))
                VirtualThread.wait { record.value.mayReturn }
            }
        }
        VirtualThread.expectRelease(of: operation, "the operation")
        (operation as? AsyncOperation)?.asyncCompletionBlock = { error in
            VirtualThread.place("completion")
            record.change { $0.completions.append(text(error)) }
        }
    }

    func start() { operation.start() }
    func cancel() { operation.cancel() }

    /// Waits until the closure has begun, and takes a copy, if it is ever going to begin.
    private func takeCopy() -> Copy? {
        VirtualThread.wait { [record, operation] in record.value.copies != nil || operation.isFinished }
        return record.change { $0.copies?.popLast() }
    }

    /// Releases a copy.
    func drop() {
        let copy = takeCopy()
        VirtualThread.place("drop")
        withExtendedLifetime(copy) {}
    }

    /// Ends the operation by a copy.
    func finish() {
        record.change { $0.isFinishCalled = true }
        takeCopy()?.finish(TestError.first)
    }

    /// Ends the operation without a copy.
    func finishFromOutside() {
        record.change { $0.isFinishCalled = true }
        (operation as? AsyncOperation)?.finish(withError: TestError.second)
    }

    /// Registers a handler by a copy, and releases that.
    func register(_ name: String) {
        guard let copy = takeCopy() else { return }
        let isLate = operation.isCancelled
        copy.onCancel { [record] in
            VirtualThread.place("handler")
            record.change { $0.called.append(name) }
        }
        record.change {
            $0.registered.append(name)
            if isLate, !$0.called.contains(name) { $0.missed.append(name) }
        }
    }

    func endHeld() {
        if holdsCopy { finish() }
        record.change { $0.mayReturn = true }
    }

    func endAll() {}

    /// What is wrong after everything is over.
    func problems() -> [String] {
        let record = record.value
        var problems: [String] = []
        let error = (operation as? any FailableOperation)?.error
        if !operation.isFinished { problems.append("the operation has not finished") }
        if operation is AsyncOperation, record.completions != [text(error)] {
            problems.append("\(text(error)), completions: \(record.completions)")
        }
        if error is LostFinishError, operation.isCancelled { problems.append("lost, though it was cancelled") }
        if error is CancellationError, !operation.isCancelled { problems.append("cancelled, though it was not") }
        if operation is AsyncOperation, !record.isFinishCalled, !operation.isCancelled, !(error is LostFinishError) {
            problems.append("\(text(error)), though it was lost")
        }
        return problems + handlerProblems(record)
    }

    /// Each handler is called if the operation is cancelled, unless something else could end it before.
    private func handlerProblems(_ record: Record) -> [String] {
        let isCancelled = operation.isCancelled
        let isRight =
            isCancelled && holdsCopy
            ? record.called.sorted() == record.registered.sorted() && record.missed.isEmpty
            : Set(record.called).count == record.called.count && (isCancelled || record.called.isEmpty)
        let (registered, called, missed) = (record.registered, record.called, record.missed)
        return isRight ? [] : ["\(isCancelled), registered: \(registered), called: \(called), missed: \(missed)"]
    }
}
#endif
