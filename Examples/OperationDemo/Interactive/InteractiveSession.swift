import CommandLineSupport
import Dispatch
import Foundation
import OperationKit

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// `--interactive`: keys add operations, steer the queue and cancel.
///
/// Keys and signals are handled one after the other on one queue, which also guards the state.
final class InteractiveSession: @unchecked Sendable {
    private let width: Int
    private let screen: Screen
    private let bench: Bench
    private let steering = DispatchQueue(label: "OperationDemo.InteractiveSession")
    private var isSerial: Bool
    private var operations: [any ReportingOperation] = []
    private var counts: [Key.Kind: Int] = [:]
    private var ending: CheckedContinuation<ExitStatus, Never>?

    static func run(_ options: Options) async throws(UsageError) -> ExitStatus {
        guard RawTerminal.isAvailable else {
            throw UsageError(message: "--interactive expects a terminal for its keys and its log, and there is none.")
        }
        return await InteractiveSession(options).run()
    }

    private init(_ options: Options) {
        let screen = Screen(console: Console(allowsColor: options.allowsColor))
        self.screen = screen
        width = options.width
        isSerial = options.mode != .concurrent
        bench = Bench(queue: OperationQueue(), speed: options.speed) { screen.show($0) }
    }

    private func run() async -> ExitStatus {
        RawTerminal.shared.enter()
        let interruption = Interruption { [self] in steering.async { self.quit(.interrupted) } }
        let handlers = SignalHandlers(queue: steering)
        handlers.handle(SIGTERM) { [self] in quit(.terminated) }
        handlers.handle(SIGHUP) { [self] in quit(.terminated) }
        handlers.handle(SIGTSTP) { [self] in pauseProcess() }
        handlers.handle(SIGCONT) { [self] in continueProcess() }
        handlers.handle(SIGWINCH) { [self] in screen.redraw() }

        let keys = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: steering)
        keys.setEventHandler { [self] in
            guard let bytes = RawTerminal.shared.read() else { return quit(.success) }
            for key in Key.keys(in: bytes) { obey(key) }
        }
        let status = await withCheckedContinuation { continuation in
            steering.async { [self] in
                ending = continuation
                applySettings()
                screen.print(Key.legend)
            }
            keys.activate()
        }
        keys.cancel()
        await stop()
        // Until here: Control-C at the end, while operations are waited for, is a second one.
        withExtendedLifetime((interruption, handlers)) {}
        return status
    }

    /// Cancels what there is, waits for it, and leaves the terminal as it was found.
    private func stop() async {
        bench.queue.cancelAllOperations()
        bench.queue.isSuspended = false
        try? await bench.queue.allOperationsFinished()
        screen.end()
        RawTerminal.shared.restore()
    }

    private func quit(_ status: ExitStatus) {
        ending?.resume(returning: status)
        ending = nil
    }

    private func obey(_ key: Key) {
        operations.removeAll { $0.isFinished }
        switch key {
        case .add(let kind):
            let operation = makeOperation(kind)
            operations.append(operation)
            bench.enqueue(operation)
        case .toggleSuspension:
            bench.queue.isSuspended.toggle()
            applySettings()
        case .toggleMode:
            isSerial.toggle()
            applySettings()
        case .cancelCurrent:
            guard let current = operations.first(where: \.isExecuting) else {
                return screen.print(["No operation is executing."])
            }
            bench.cancel(current)
        case .cancelAll:
            if operations.isEmpty { screen.print(["There is no operation to cancel."]) }
            for operation in operations { bench.cancel(operation) }
        case .timeline:
            screen.print(Timeline(bench.log.events, until: bench.log.now))
        case .clear:
            bench.log.clear()
            screen.clear()
        case .help:
            screen.print(Key.legend)
        case .quit:
            quit(.success)
        }
    }

    private func makeOperation(_ kind: Key.Kind) -> any ReportingOperation {
        counts[kind, default: 0] += 1
        let name = "\(kind.rawValue)-\(counts[kind, default: 0])"
        switch kind {
        case .sync: return bench.sync(name, 1.5)
        case .naive: return bench.naive(name, 2)
        case .async: return bench.async(name, 2)
        case .compound: return bench.compound(name, [1, 1.5, 1])
        case .failing: return bench.async(name, 1, failure: ExpectedFailure())
        }
    }

    private func applySettings() {
        bench.queue.maxConcurrentOperationCount = isSerial ? 1 : width
        let mode = isSerial ? "serial" : "concurrent (\(width))"
        screen.showSettings("\(mode), \(bench.queue.isSuspended ? "stopped" : "running")")
    }

    /// Control-Z: the shell gets its terminal back until the process is continued. That is not where `kill` returns: the other
    /// threads are stopped a little later than it does.
    private func pauseProcess() {
        screen.eraseStatus()
        RawTerminal.shared.restore()
        kill(getpid(), SIGSTOP)
    }

    private func continueProcess() {
        RawTerminal.shared.enter()
        screen.redraw()
    }
}

private struct ExpectedFailure: Error, LocalizedError {
    var errorDescription: String? { "It failed, as it was asked to." }
}
