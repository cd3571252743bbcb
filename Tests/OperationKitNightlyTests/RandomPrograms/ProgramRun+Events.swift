import OperationKitTestSupport

/// What observers are told, in a form that can be compared.
enum StressSignal: Equatable, Sendable {
    case added, started, waiting, running, cancelled
    case finished(StressOutcome)

    /// - Returns: `nil` if programs have no such event.
    init?(_ kind: OperationEvent.Kind) {
        switch kind {
        case .added: self = .added
        case .started: self = .started
        case .waiting: self = .waiting
        case .running: self = .running
        case .cancelled: self = .cancelled
        case .retrying: return nil
        case .finished(let error): self = .finished(StressOutcome(error))
        }
    }

    var isEnd: Bool { if case .finished = self { true } else { false } }
}

/// Writes down the events of the operations of a program. It does not hold the run, as operations hold their observers.
final class ProgramObserver: OperationObserver {
    private let log: StressLog

    init(_ log: StressLog) {
        self.log = log
    }

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        guard let id = Int(StressNode.name(in: event.name).dropFirst()) else { return }
        guard let signal = StressSignal(event.kind) else { return }
        log.add(.emitted(id, signal))
        // That of the root comes last.
        if id == 0, signal.isEnd { log.closed() }
    }
}

extension ProgramRun {
    /// Writes down the events of an operation from now on.
    func observeEvents(of operation: Operation) {
        guard let operation = operation as? AsyncOperation else { return }
        if operation.name == "n0" { log.opened() }
        operation.addObserver(observer)
    }
}
