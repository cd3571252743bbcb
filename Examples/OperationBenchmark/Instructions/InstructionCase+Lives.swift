import Foundation
import OperationKit

// Operations that are created, and some of them started by hand.
extension InstructionCase {
    static let plain = InstructionCase(
        id: "plain", summary: "creating and freeing an Operation with an empty main(), all alive together"
    ) { count in
        withExtendedLifetime(Plain.make(count)) {}
    }

    static let creation = InstructionCase(
        id: "creation", summary: "creating and freeing an AsyncOperation, all alive together", baseline: "plain"
    ) { count in
        withExtendedLifetime(Leaf.make(count)) {}
    }

    static let plainAlone = InstructionCase(
        id: "plain-alone", summary: "plain, each freed before the next one is created"
    ) { count in
        for _ in 0..<count { withExtendedLifetime(Plain()) {} }
    }

    static let lockedAlone = InstructionCase(
        id: "locked-alone", summary: "plain-alone, with an NSLock of its own", baseline: "plain-alone"
    ) { count in
        for _ in 0..<count { withExtendedLifetime(Locked()) {} }
    }

    static let creationAlone = InstructionCase(
        id: "creation-alone", summary: "creation, each freed before the next one is created",
        baseline: "plain-alone"
    ) { count in
        for _ in 0..<count { withExtendedLifetime(Leaf()) {} }
    }

    static let life = InstructionCase(
        id: "life", summary: "creation, and start() by hand; the operation finishes in main()",
        baseline: "creation"
    ) { count in
        for operation in Leaf.make(count) { operation.start() }
    }

    static let observed = InstructionCase(
        id: "observed", summary: "life, with an observer of its own", baseline: "life"
    ) { count in
        let observer = Idle()
        let operations = (0..<count).map { _ in
            let operation = Leaf()
            operation.addObserver(observer)
            return operation
        }
        for operation in operations { operation.start() }
    }

    static let global = InstructionCase(
        id: "global", summary: "life, with a global observer", baseline: "life"
    ) { count in
        AsyncOperation.addGlobalObserver(Idle())
        for operation in Leaf.make(count) { operation.start() }
    }

    static let timeout = InstructionCase(
        id: "timeout", summary: "life, with a timeout that is not reached", baseline: "life"
    ) { count in
        for operation in Leaf.timed(count) { operation.start() }
    }

    static let dependencies = InstructionCase(
        id: "dependencies", summary: "plain, each dependent on the one before"
    ) { count in
        var operations = Plain.make(count).chained()
        // From the end: an operation owns the one before it, so a chain that is freed as a whole overflows the stack.
        while operations.popLast() != nil {}
    }
}

/// The least that a subclass of Foundation's can be.
private final class Plain: Operation, @unchecked Sendable {
    override func main() {}

    static func make(_ count: Int) -> [Operation] {
        (0..<count).map { _ in Plain() }
    }
}

/// The least that a subclass needs to have a state of its own that threads may share.
private final class Locked: Operation, @unchecked Sendable {
    private let lock = NSLock()

    override func main() {}
}

/// An observer that does nothing.
final class Idle: OperationObserver {
    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {}
}
