import Foundation
import OperationKit

/// What a race is about: an operation that counts everything that happens to it, and knows what must never happen.
package final class RaceSubject: ScriptedOperation, @unchecked Sendable {
    package struct Record {
        package var mains = 0
        package var hooks = 0
        package var isInMain = false
        package var completions: [String] = []
        package var accepted: [String] = []
        package var violations: [String] = []
    }

    package let record = Shared(Record())

    package init(
        main: @escaping @Sendable (RaceSubject) -> Void, didCancel: @escaping @Sendable (RaceSubject) -> Void = { _ in }
    ) {
        super.init(
            main: {
                guard let self = $0 as? RaceSubject else { return }
                self.record.change {
                    $0.mains += 1
                    $0.isInMain = true
                }
                main(self)
                self.record.change { $0.isInMain = false }
            },
            didCancel: {
                guard let self = $0 as? RaceSubject else { return }
                let isCancelled = self.isCancelled
                self.record.change {
                    $0.hooks += 1
                    if $0.isInMain { $0.violations.append("the hook ran during main()") }
                    if $0.mains == 0 { $0.violations.append("the hook ran without main()") }
                    if !isCancelled { $0.violations.append("the hook ran, and isCancelled was false") }
                }
                didCancel(self)
            })
        asyncCompletionBlock = { [unowned self] in completed($0) }
    }

    private func completed(_ outcome: (any Error)?) {
        let (isCancelled, isFinished, readable) = (isCancelled, isFinished, text(error))
        record.change {
            $0.completions.append(text(outcome))
            if isFinished { $0.violations.append("completed after isFinished") }
            if readable != text(outcome) { $0.violations.append("\(text(outcome)) was delivered, \(readable) read") }
            if ["cancelled", "reason"].contains(text(outcome)), !isCancelled {
                $0.violations.append("the outcome says cancelled, and isCancelled was false")
            }
        }
    }

    /// Finishes, and notes whether that was accepted.
    package func end(_ error: TestError?) {
        if finish(withError: error) { record.change { $0.accepted.append(text(error)) } }
    }

    /// What is wrong after everything is over.
    package func problems() -> [String] {
        let record = record.value
        var problems = record.violations
        if !isFinished || isExecuting { problems.append("not finished, \(isExecuting)") }
        if record.completions.count != 1 { problems.append("completions: \(record.completions)") }
        if record.accepted.count > 1 { problems.append("accepted: \(record.accepted)") }
        if let winner = record.accepted.first, record.completions != [winner] {
            problems.append("\(winner) won, \(record.completions) came")
        }
        if record.accepted.isEmpty, !isCancelled { problems.append("no call decided: \(record.completions)") }
        if record.completions.first != text(error) { problems.append("error reads \(text(error))") }
        if record.mains > 1 || record.hooks > 1 { problems.append("mains \(record.mains), hooks \(record.hooks)") }
        if record.hooks > 0, !isCancelled { problems.append("a hook, and not cancelled") }
        return problems
    }
}
