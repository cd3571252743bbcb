#if DEBUG
import Foundation
import OperationKitTestSupport

@testable import OperationKit

/// A compound with a child of a class that the library does not know, which overrides all that it is asked for.
final class StockSubject: ExplorationSubject, @unchecked Sendable {
    let compound: CompoundOperation
    let stock = StockChild("stock")
    /// No child. The test ends it when nothing else can go on.
    let outer = ScriptedOperation.idle("outer")
    private let completions = Shared<[String]>([])
    private let found = Shared<[String]>([])

    init(limit: Int = -1) {
        let other = ScriptedOperation("other") {
            VirtualThread.place("other")
            $0.finish()
        }
        compound = CompoundOperation(
            name: "compound", operations: [stock, other], maxConcurrentOperationCount: limit)
        for object in [compound, stock, other, outer] { VirtualThread.expectRelease(of: object, "\(type(of: object))") }
        compound.asyncCompletionBlock = { [completions] error in
            VirtualThread.place("completion")
            completions.change { $0.append(text(error)) }
        }
    }

    /// The compound describes itself, under one of the names that its child has had.
    func describe() {
        let text = compound.debugDescription
        let isRight = text.contains("“compound”") && (!text.contains("“st") || text.contains("“stock"))
        if !isRight { found.change { $0.append(text) } }
    }

    func endHeld() {
        compound.start()
        let isOpen = VirtualThread.inOneStep { compound.isExecuting && stock.isReady && !stock.isFinished }
        if isOpen { found.change { $0.append("the child is forgotten") } }
    }

    func endAll() {
        outer.start()
        outer.finish()
    }

    func problems() -> [String] {
        var problems = stock.record.value.problems + found.value
        if !compound.isFinished { problems.append("the compound has not finished") }
        if !stock.isFinished { problems.append("the child has not finished") }
        if stock.record.value.runs > 1 { problems.append("the child ran more than once") }
        if stock.record.value.runs == 0, !stock.isCancelled { problems.append("the child was left out") }
        if completions.value.count != 1 { problems.append("completions: \(completions.value)") }
        return problems
    }
}

/// A synchronous operation with states of its own. Foundation's would end the process where this one writes a problem
/// down.
final class StockChild: Operation, @unchecked Sendable {
    struct Record {
        var name: String?
        var isExecuting = false
        var isFinished = false
        var runs = 0
        var problems: [String] = []
    }

    let record: Shared<Record>

    init(_ name: String) {
        record = Shared(Record(name: name))
    }

    override var isExecuting: Bool { record.value.isExecuting }
    override var isFinished: Bool { record.value.isFinished }

    override var isReady: Bool {
        VirtualThread.place("isReady")
        return super.isReady
    }

    override var dependencies: [Operation] {
        VirtualThread.place("dependencies")
        return super.dependencies
    }

    override var queuePriority: QueuePriority {
        get {
            VirtualThread.place("queuePriority")
            return .normal
        }
        set {}
    }

    override var name: String? {
        get {
            VirtualThread.place("name")
            return record.value.name
        }
        set { record.value.name = newValue }
    }

    override func start() {
        VirtualThread.place("start")
        let isOfQueue = VirtualThreadQueue.isBeginning(self)
        if !isOfQueue, !VirtualThread.inOneStep({ isReady }) {
            record.change { $0.problems.append("begun though not ready, and not by a queue") }
        }
        guard !isCancelled else { return finish() }
        record.change {
            $0.runs += 1
            $0.isExecuting = true
        }
        VirtualThread.place("main")
        finish()
    }

    private func finish() {
        record.change {
            $0.isExecuting = false
            $0.isFinished = true
        }
        VirtualThread.inOneStep {
            didChangeValue(forKey: "isExecuting")
            didChangeValue(forKey: "isFinished")
        }
    }
}
#endif
