import OperationKit

extension Case {
    static let tasks = Case(
        id: "tasks",
        summary: "TaskOperations, from the start to the value",
        baseline: "children of a task group, from the addition to the result",
        timed: "starting, or adding, until all values are there, in a task"
    ) { scale in
        [false, true].map { isTogether in
            let manner = isTogether ? "all at the same time" : "one after the other"
            let operations = Side("TaskOperations, \(manner)", units: scale.count) {
                let operations = (0..<scale.count).map { number in TaskOperation { number } }
                return {
                    inTask {
                        if isTogether { for operation in operations { operation.start() } }
                        for operation in operations {
                            if !isTogether { operation.start() }
                            _ = try? await operation.value
                        }
                    }
                    return operations
                }
            }
            let group = Side("task group, \(manner)", units: scale.count) {
                {
                    inTask {
                        await withTaskGroup(of: Int.self) { group in
                            for number in 0..<scale.count {
                                group.addTask { number }
                                if !isTogether { _ = await group.next() }
                            }
                            await group.waitForAll()
                        }
                    }
                    return ()
                }
            }
            return Experiment("\(grouped(scale.count)) values, \(manner)", ours: operations, baseline: group, goal: 3)
        }
    }
}
