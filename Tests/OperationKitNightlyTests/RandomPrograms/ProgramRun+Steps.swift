import OperationKitTestSupport

// Steps of macros and waterfalls.
extension ProgramRun {
    func step(_ node: StressNode) -> IOOperation<Int, Int> {
        let operation: IOOperation<Int, Int>
        switch node.leaf?.kind {
        case .hopping, .stoppable, .guarded:
            operation = Step { [self] step, input in
                begin(node)
                hop { self.end(step, node, input) }
            }
        case .later:
            operation = Step { [self] step, input in
                begin(node)
                later { self.end(step, node, input) }
            }
        case .losing:
            operation = IOBlockOperation<Int, Int>.finishing { [self] _, finish in lose(finish, node) }
        case .task, .awaiting:
            operation = IOTaskOperation { [self] (input: Int) async throws -> Int in
                begin(node)
                await Task.yield()
                try end(node)
                return input + 1
            }
        case .block, .throwing:
            operation = IOBlockOperation { [self] (input: Int) throws -> Int in
                begin(node)
                try end(node)
                return input + 1
            }
        case .inline, .foreign, nil:
            operation = Step { [self] step, input in
                begin(node)
                end(step, node, input)
            }
        }
        return enroll(operation, node)
    }

    func end(_ step: Step<Int, Int>, _ node: StressNode, _ input: Int) {
        end(node) { error in
            if let error { step.finish(withError: error) } else { step.finish(with: input + 1) }
        }
    }

    func macro(_ steps: [StressNode]) -> Operation {
        let operations = steps.map { step($0) }
        let macro = chain(of: operations)
        for (operation, node) in zip(operations, steps) where requiresLate(node) { requireSuccess(operation, node) }
        macro.input = 0
        return macro
    }

    func waterfall(_ jobs: [StressNode]) -> Operation {
        var waterfall = Waterfall<Int, Int>()
        for node in jobs {
            waterfall = waterfall.thenDecide { [self] value in
                guard node.isClosure else {
                    let operation = step(node)
                    operation.input = value
                    return .operation(operation)
                }
                begin(node)
                try end(node)
                return .value(value + 1)
            }
        }
        waterfall.input = 0
        return waterfall
    }

    func recovery(_ source: StressNode, _ made: StressNode) -> Operation {
        step(source).recoverRun { [self] _ in step(made).with(input: 0) }.with(input: 0)
    }

    func gathering(_ compound: StressCompound) -> Operation {
        compound.children.map { step($0).with(input: 0) }
            .gathered(maxConcurrentOperationCount: compound.limit, failurePolicy: compound.policy)
    }
}
