import OperationKit

// Values of tasks, and items of collections.
extension InstructionCase {
    static let group = InstructionCase(
        id: "group", summary: "a child of a task group, from its addition to its result", isRepeated: true
    ) { count in
        inTask {
            await withTaskGroup(of: Int.self) { group in
                for number in 0..<count {
                    group.addTask { number }
                    _ = await group.next()
                }
            }
        }
    }

    static let value = InstructionCase(
        id: "value", summary: "a TaskOperation, from its creation to its value, awaited", baseline: "group",
        isRepeated: true
    ) { count in
        let operations = (0..<count).map { number in TaskOperation { number } }
        inTask {
            for operation in operations {
                operation.start()
                _ = try? await operation.value
            }
        }
    }

    static let item = InstructionCase(
        id: "item", summary: "an item of a SequentialItemOperation that is run over an array", isRepeated: true
    ) { count in
        let end = End()
        SequentialItems().performOperation(on: Array(0..<count)) { _ in end.come() }
        end.wait()
    }

    static let sequence = InstructionCase(
        id: "sequence", summary: "item, over a sequence with performOperation(onEach:)", baseline: "item",
        isRepeated: true
    ) { count in
        inTask { _ = try? await SequentialItems().performOperation(onEach: 0..<count) }
    }
}
