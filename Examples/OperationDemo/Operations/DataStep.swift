import Dispatch
import Foundation
import OperationKit

/// A typed step: it takes its input, works for a while, counts its progress, and makes its output.
final class DataStep<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, ReportingOperation,
    @unchecked Sendable
{
    private static var ticks: Int64 { 4 }

    let report: Reporter
    /// What it is part of: shows its progress as this one works.
    private let whole: Whole
    private let isFirst: Bool
    private let seconds: Double
    private let work: @Sendable (Input) throws -> Output
    private var timer: (any DispatchSourceTimer)?

    init(
        report: Reporter, of whole: Whole, isFirst: Bool, seconds: Double,
        _ work: @escaping @Sendable (Input) throws -> Output
    ) {
        self.report = report
        self.whole = whole
        self.isFirst = isFirst
        self.seconds = seconds
        self.work = work
        super.init()
        name = report.subject.name
        asyncCompletionBlock = { error in report(.asyncCompletion, error.map(sentence)) }
        report.followCompletion(of: self)
    }

    override func main(input: Input) {
        if isFirst { whole.report(.started) }
        report(.started, "gets \(input)")
        progress.totalUnitCount = Self.ticks
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { [self] in tick(input) }
        timer.schedule(deadline: .now() + seconds / Double(Self.ticks), repeating: seconds / Double(Self.ticks))
        self.timer = timer
        timer.activate()
    }

    override func didCancel() {
        timer?.cancel()
        report(.workCancelled)
        finish(withError: CancellationError())
    }

    private func tick(_ input: Input) {
        progress.completedUnitCount += 1
        whole.showProgress()
        guard progress.isFinished else { return }
        timer?.cancel()
        do {
            let output = try work(input)
            report(.workFinished, "makes \(output)")
            finish(with: output)
        } catch {
            report(.workFailed, sentence(for: error))
            finish(withError: error)
        }
    }
}

/// How a macro or a waterfall appears in the log: as one operation, with a bar that its `Progress` drives.
final class Whole: Sendable {
    let report: Reporter
    nonisolated(unsafe) private weak var operation: AsyncOperation?

    init(report: Reporter) {
        self.report = report
    }

    /// Called before the operation is enqueued.
    func follow(_ operation: AsyncOperation) {
        unsafe self.operation = operation
        report(.enqueued)
        operation.asyncCompletionBlock = { [report] error in
            switch error {
            case nil: report(.workFinished)
            case is CancellationError: report(.workCancelled)
            case let error?: report(.workFailed, sentence(for: error))
            }
            report(.asyncCompletion, error.map(sentence))
        }
        report.followCompletion(of: operation)
    }

    func showProgress() {
        guard let fraction = unsafe operation?.progress.fractionCompleted else { return }
        let done = Int((fraction * 20).rounded(.down))
        let bar = String(repeating: "█", count: done) + String(repeating: "░", count: 20 - done)
        report(.progress, "\(bar) \(Int((fraction * 100).rounded())) %")
    }
}
