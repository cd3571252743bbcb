import Foundation
import OperationKit
import OperationKitTestSupport

/// What observers are told, in a form that can be compared.
enum StressSignal: Equatable, Sendable {
    case added, started, waiting, running, cancelled, retrying
    case finished(StressOutcome)
    /// Any event of an attempt that the operation has made.
    case ofAttempt

    init(_ kind: OperationEvent.Kind) {
        switch kind {
        case .added: self = .added
        case .started: self = .started
        case .waiting: self = .waiting
        case .running: self = .running
        case .cancelled: self = .cancelled
        case .retrying: self = .retrying
        case .finished(let error): self = .finished(StressOutcome(error))
        }
    }

    var isEnd: Bool { if case .finished = self { true } else { false } }
}

/// Writes down the events of the operations of a program. It does not hold the run, as operations hold their observers.
final class ProgramObserver: OperationObserver {
    private let log: StressLog
    private let references: Shared<[Int: ProgramRun.Reference]>

    init(_ log: StressLog, _ references: Shared<[Int: ProgramRun.Reference]>) {
        self.log = log
        self.references = references
    }

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        guard let id = Int(StressNode.name(in: event.name).dropFirst()) else { return }
        let isNode = references.change { $0[id]?.known === operation }
        log.add(.emitted(id, isNode ? StressSignal(event.kind) : .ofAttempt))
        // That of the root comes last.
        if isNode, id == 0, case .finished = event.kind { log.closed() }
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
