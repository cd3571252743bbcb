import Dispatch
import Foundation
import OperationKit

/// A typed step: it takes its input, works for a while, counts its progress, and makes its output.
final class DataStep<Input: Sendable, Output: Sendable>: IOOperation<Input, Output>, @unchecked Sendable {
    typealias Work = @Sendable (Input) throws -> Output

    private static var ticks: Int64 { 4 }

    private let recording: Recording
    private let seconds: Double
    /// Called after each part of the work.
    private let didProgress: @Sendable () -> Void
    private let work: Work
    private var timer: (any DispatchSourceTimer)?

    init(
        name: String, seconds: Double, recording: Recording, didProgress: @escaping @Sendable () -> Void,
        _ work: @escaping Work
    ) {
        self.recording = recording
        self.seconds = seconds
        self.didProgress = didProgress
        self.work = work
        super.init()
        self.name = name
    }

    override func main(input: Input) {
        say("gets \(input)")
        progress.totalUnitCount = Self.ticks
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { [self] in tick(input) }
        timer.schedule(deadline: .now() + seconds / Double(Self.ticks), repeating: seconds / Double(Self.ticks))
        self.timer = timer
        timer.activate()
    }

    override func didCancel() {
        timer?.cancel()
        finish(withError: CancellationError())
    }

    private func tick(_ input: Input) {
        progress.completedUnitCount += 1
        didProgress()
        guard progress.isFinished else { return }
        timer?.cancel()
        do {
            let output = try work(input)
            say("makes \(output)")
            finish(with: output)
        } catch {
            finish(withError: error)
        }
    }

    private func say(_ text: String) {
        recording.note(name ?? "", text)
    }
}

/// A bar in the log that shows how far an operation has come, by its `Progress`.
final class ProgressNotes: Sendable {
    private static let width = 20

    private let recording: Recording
    nonisolated(unsafe) private weak var operation: AsyncOperation?

    init(recording: Recording) {
        self.recording = recording
    }

    /// Called before the operation is enqueued.
    func follow(_ operation: AsyncOperation) {
        unsafe self.operation = operation
    }

    func show() {
        guard let operation = unsafe operation else { return }
        let fraction = operation.progress.fractionCompleted
        let done = Int((fraction * Double(Self.width)).rounded(.down))
        let bar = String(repeating: "█", count: done) + String(repeating: "░", count: Self.width - done)
        recording.note(operation.name ?? "", "\(bar) \(Int((fraction * 100).rounded())) %")
    }
}
