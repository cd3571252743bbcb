import CommandLineSupport
import Dispatch
import Foundation
import OperationKit
import OperationKitTimelines

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// `--interactive`: keys add operations, steer the queue, choose and cancel.
///
/// Keys and signals are handled one after the other on one queue, which also guards the state.
final class InteractiveSession: @unchecked Sendable {
    private static let interval = DispatchTimeInterval.milliseconds(100)

    private let width: Int
    private let screen: Screen
    private let recording = Recording()
    private let bench: Bench
    private let steering = DispatchQueue(label: "OperationDemo.InteractiveSession")
    private var isSerial: Bool
    private var operations: [OperationID: Operation] = [:]
    private var counts: [Key.Kind: Int] = [:]
    private var forgotten: Set<OperationID> = []
    private var choice: OperationID?
    private var message = ""
    private var showsHelp = false
    private var isPaused = false
    private var ending: CheckedContinuation<ExitStatus, Never>?

    static func run(_ options: Options) async throws(UsageError) -> ExitStatus {
        guard RawTerminal.isAvailable else {
            throw UsageError(message: "--interactive expects a terminal for its keys and its bars, and there is none.")
        }
        return await InteractiveSession(options).run()
    }

    private init(_ options: Options) {
        screen = Screen(console: Console(allowsColor: options.allowsColor))
        width = options.width
        isSerial = options.mode != .concurrent
        bench = Bench(queue: OperationQueue(), recording: recording, speed: options.speed)
    }

    private func run() async -> ExitStatus {
        RawTerminal.shared.enter()
        let interruption = Interruption { [self] in steering.async { self.quit(.interrupted) } }
        let handlers = SignalHandlers(queue: steering)
        handlers.handle(SIGTERM) { [self] in quit(.terminated) }
        handlers.handle(SIGHUP) { [self] in quit(.terminated) }
        handlers.handle(SIGTSTP) { [self] in pauseProcess() }
        handlers.handle(SIGCONT) { [self] in continueProcess() }
        handlers.handle(SIGWINCH) { [self] in
            screen.clear()
            draw()
        }

        let keys = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: steering)
        keys.setEventHandler { [self] in
            guard let bytes = RawTerminal.shared.read() else { return quit(.success) }
            for key in Key.keys(in: bytes) { obey(key) }
            draw()
        }
        let clock = DispatchSource.makeTimerSource(queue: steering)
        clock.schedule(deadline: .now() + Self.interval, repeating: Self.interval)
        clock.setEventHandler { [self] in draw() }
        let status = await withCheckedContinuation { continuation in
            steering.async { [self] in
                ending = continuation
                applySettings()
                draw()
            }
            keys.activate()
            clock.activate()
        }
        keys.cancel()
        await stop()
        clock.cancel()
        steering.sync {
            draw()
            screen.end()
        }
        RawTerminal.shared.restore()
        // Until here: Control-C at the end, while operations are waited for, is a second one.
        withExtendedLifetime((interruption, handlers)) {}
        return status
    }

    /// Cancels what there is, and waits for it. It can be seen how that ends.
    private func stop() async {
        bench.queue.cancelAllOperations()
        bench.queue.isSuspended = false
        await bench.finishAll()
        await recording.finished()
    }

    private func quit(_ status: ExitStatus) {
        ending?.resume(returning: status)
        ending = nil
    }

    // MARK: - Keys

    private func obey(_ key: Key) {
        operations = operations.filter { !$0.value.isFinished }
        message = ""
        switch key {
        case .add(let kind): add(kind)
        case .toggleSuspension:
            bench.queue.isSuspended.toggle()
        case .toggleMode:
            isSerial.toggle()
            applySettings()
        case .choosePrevious: choice = board.neighbor(-1)
        case .chooseNext: choice = board.neighbor(1)
        case .cancelChosen:
            guard let operation = board.chosen.flatMap({ operations[$0] }) else {
                return message = "There is no operation to cancel."
            }
            message = "“\(operation.name ?? "")” was cancelled."
            operation.cancel()
        case .cancelAll:
            message = operations.isEmpty ? "There is no operation to cancel." : "All were cancelled."
            bench.queue.cancelAllOperations()
        case .clear: forget()
        case .help: showsHelp.toggle()
        case .quit: quit(.success)
        }
    }

    private func add(_ kind: Key.Kind) {
        counts[kind, default: 0] += 1
        let name = "\(kind.rawValue)-\(counts[kind, default: 0])"
        let operation: Operation =
            switch kind {
            case .sync: bench.sync(name, 1.5)
            case .naive: bench.naive(name, 2)
            case .async: bench.async(name, 2)
            case .compound: compound(name)
            case .failing: bench.async(name, 1, failure: ExpectedFailure())
            }
        remember(operation)
        bench.enqueue(operation)
    }

    private func compound(_ name: String) -> CompoundOperation {
        let children = [1, 1.5, 1].enumerated().map { bench.async("\(name)-\($0 + 1)", $1) }
        for child in children { remember(child) }
        return bench.compound(name, children)
    }

    /// Keeps an operation so that it can be cancelled.
    private func remember(_ operation: Operation) {
        let id = (operation as? AsyncOperation)?.observationID ?? (operation as? any TrackedOperation)?.track.id
        if let id { operations[id] = operation }
    }

    /// From here on, operations that have finished with all that is inside them are not shown.
    private func forget() {
        for entry in recording.timeline.entries where entry.parent == nil {
            let group = recording.timeline.entries(inside: entry.id)
            if group.allSatisfy({ $0.finished != nil }) { forgotten.formUnion(group.map(\.id)) }
        }
    }

    private func applySettings() {
        bench.queue.maxConcurrentOperationCount = isSerial ? 1 : width
    }

    // MARK: - Drawing

    private var board: Board {
        let timeline = recording.timeline
        let entries = timeline.entries.filter { !forgotten.contains($0.id) }
        let settings = [
            isSerial ? "serial" : "concurrent (\(width))", bench.queue.isSuspended ? "stopped" : "running",
        ]
        return Board(
            OperationTimeline(entries: entries, duration: timeline.duration), settings: settings, choice: choice,
            message: message, showsHelp: showsHelp)
    }

    private func draw() {
        if !isPaused { screen.show(board) }
    }

    /// Control-Z: the shell gets its terminal back until the process is continued. That is not where `kill` returns: the other
    /// threads are stopped a little later than it does.
    private func pauseProcess() {
        screen.erase()
        isPaused = true
        RawTerminal.shared.restore()
        kill(getpid(), SIGSTOP)
    }

    private func continueProcess() {
        isPaused = false
        RawTerminal.shared.enter()
        draw()
    }
}

private struct ExpectedFailure: LocalizedError, CustomStringConvertible {
    var description: String { "It failed, as it was asked to." }
    var errorDescription: String? { description }
}
