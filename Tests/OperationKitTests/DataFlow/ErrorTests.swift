import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// The errors as people and as older code meet them.
@Suite("Errors", .hangGuard) struct ErrorTests {
    struct Expectation: Sendable, CustomTestStringConvertible {
        let error: any LocalizedError & CustomNSError
        let domain: String
        let code: Int
        let phrase: String
        var testDescription: String { "\(error)" }
    }

    static let all = [
        Expectation(
            error: IOOperationError.missingInput(operation: "decode"), domain: "OperationKit.IOOperationError", code: 1,
            phrase: "was started without an input"),
        Expectation(
            error: IOOperationError.missingOutput(operation: "decode"), domain: "OperationKit.IOOperationError",
            code: 2, phrase: "finished without an output"),
        Expectation(
            error: OperationQueueError.cannotBeAdded(operation: "decode"), domain: "OperationKit.OperationQueueError",
            code: 1, phrase: "cannot be added"),
        Expectation(
            error: DependencyError.dependencyFailed(
                operation: "decode", dependency: "load", error: CancellationError()),
            domain: "OperationKit.DependencyError", code: 1, phrase: "because “load” was cancelled"),
        Expectation(
            error: DependencyError.dependencyUnfinished(operation: "decode", dependency: "load"),
            domain: "OperationKit.DependencyError", code: 2,
            phrase: "“load” had not finished. Put “decode” on a queue"),
        Expectation(
            error: ChainError.alreadyUsed(operation: "decode", chain: "macro"),
            domain: "OperationKit.ChainError", code: 1, phrase: "is part of another operation"),
        Expectation(
            error: ChainError.consumed(chain: "decode"), domain: "OperationKit.ChainError", code: 2,
            phrase: "part of a longer chain"),
        Expectation(
            error: ChainError.alreadyStarted(chain: "decode"), domain: "OperationKit.ChainError",
            code: 3, phrase: "had been started"),
        Expectation(
            error: ChainError.notAStep(operation: "decode", chain: "macro"),
            domain: "OperationKit.ChainError", code: 4, phrase: "no earlier step"),
    ]

    @Test("The domain and the code of each error are stable", arguments: all)
    func domainAndCode(expectation: Expectation) {
        let error = expectation.error as NSError
        #expect(error.domain == expectation.domain)
        #expect(error.code == expectation.code)
    }

    @Test("The description of each error is a sentence with the name of the operation", arguments: all)
    func description(expectation: Expectation) {
        let error: any Error = expectation.error
        let sentence = error.localizedDescription
        #expect(sentence.contains("“decode”"))
        #expect(sentence.contains(expectation.phrase))
        #expect(sentence.hasSuffix("."))
        #expect(expectation.error.errorDescription == sentence)
    }

    @Test("The description of each error is in its `userInfo` too", arguments: all)
    func userInfo(expectation: Expectation) {
        let error = expectation.error as NSError
        #expect(error.userInfo[NSLocalizedDescriptionKey] as? String == expectation.error.errorDescription)
        #expect(error.localizedDescription == expectation.error.errorDescription)
    }

    @Test("The domain of an error has the name of its type") func domains() {
        #expect(IOOperationError.errorDomain == "OperationKit.\(IOOperationError.self)")
        #expect(OperationQueueError.errorDomain == "OperationKit.\(OperationQueueError.self)")
    }
}
