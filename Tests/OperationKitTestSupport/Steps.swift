import Dispatch
package import OperationKit

/// A typed operation made of a closure, which gets it as an argument so that it need not hold it. Cancelled while it
/// works, it ends.
package final class Step<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    private let work: @Sendable (Step, Input) -> Void

    package init(_ name: String? = nil, _ work: @escaping @Sendable (Step, Input) -> Void) {
        self.work = work
        super.init()
        self.name = name
    }

    package override func main(input: Input) { work(self, input) }

    package override func didCancel() { finish(withError: CancellationError()) }
}

extension Step {
    package static func failing(_ name: String? = nil, _ error: TestError = .first) -> Step {
        Step(name) { step, _ in step.finish(withError: error) }
    }
}

extension Step where Input == Int, Output == Int {
    /// Adds 1, and writes down its name.
    package static func increment(_ name: String, log: EventLog = EventLog()) -> Step {
        Step(name) { step, input in
            log.add(name)
            step.finish(with: input + 1)
        }
    }
}

/// Hands its work to another thread, so that it ends there.
package func elsewhere(_ work: @escaping @Sendable () -> Void) {
    DispatchQueue.global().async(execute: work)
}

/// A chain of steps that only add 1.
package func chain(of steps: [IOOperation<Int, Int>]) -> MacroOperation<Int, Int> {
    steps.dropFirst().reduce(MacroOperation(steps[0])) { $0.then($1) }
}

extension Result {
    package var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
