import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

// Bindings of compounds, and of their children.
extension BindingTests {
    @Test("A compound is handed its values before its children start") func compound() async {
        let log = EventLog()
        let fetch = Fetch()
        let compound = CompoundOperation(operations: [BlockOperation { log.add("child") }])
        compound.bind(to: fetch) { _, fetch in log.add("transfer \(fetch.users.count)") }
        await run([compound, fetch])
        #expect(log.events == ["transfer 2", "child"] && compound.error == nil)
    }

    enum Requirement: CaseIterable { case requireSuccess, keyPaths, closure }

    @Test(
        "A compound whose binding or required success fails runs no child, and ends after its children",
        arguments: Requirement.allCases
    )
    func failedCompound(requirement: Requirement) async {
        let log = EventLog()
        let fetch = Fetch(TestError.first)
        let child = ScriptedOperation.logged(log)
        let compound = CompoundOperation(operations: [child])
        compound.asyncCompletionBlock = { _ in log.add("compound, child finished: \(child.isFinished)") }
        switch requirement {
        case .requireSuccess: compound.requireSuccess(of: fetch)
        case .keyPaths: compound.bind(\.name, to: fetch, \.name)
        case .closure: compound.bind(to: fetch) { _, _ in throw TestError.second }
        }
        await run([compound, fetch])
        #expect(log.events == ["asyncCompletionBlock cancelled", "compound, child finished: true"])
        #expect(compound.error is DependencyError || (requirement == .closure && text(compound.error) == "second"))
    }

    @Test("Children of a compound can be bound to each other") func children() async throws {
        let (fetch, process) = (Fetch(), Process())
        process.bind(\.users, to: fetch, \.users)
        let compound = CompoundOperation(operations: [process, fetch])
        try await OperationQueue().run(compound)
        #expect(process.users.count == 2)
    }
}
