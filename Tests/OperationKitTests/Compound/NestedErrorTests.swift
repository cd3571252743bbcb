import OperationKitTestSupport

@Suite("Nested errors", .hangGuard) struct NestedErrorTests {
    private final class Described: LocalizedError, @unchecked Sendable {
        let count = Shared(0)
        var errorDescription: String? {
            count.value += 1
            return "It broke."
        }
    }

    /// Compounds inside compounds. Every second level is an operation that waited for the compound inside.
    private static func nested(_ depth: Int, _ innermost: any Error, isMixed: Bool = false) -> CompoundOperationError {
        var error = innermost
        for level in 0..<depth {
            if isMixed, level % 2 == 1 {
                error = DependencyError.dependencyFailed(operation: "o\(level)", dependency: "d\(level)", error: error)
            }
            error = CompoundOperationError.suboperationFailure(
                name: "c\(level)", errors: [SuboperationError(name: "n\(level)", index: 0, error: error)])
        }
        return error as? CompoundOperationError ?? .suboperationFailure(name: "none", errors: [])
    }

    @Test("Deeply nested errors are freed, described and converted on a small stack", arguments: [false, true])
    func deepNesting(isMixed: Bool) async {
        await onThread(stackSize: workerStackSize) {
            let depth = TestExtent.choose(2_000, long: 10_000)
            let error = Self.nested(depth, TestError.first, isMixed: isMixed)
            #expect(error.localizedDescription.count < 1_000)
            #expect(error.nsError.localizedDescription == error.errorDescription)
            #expect(error.leafErrors.count == 1)
            let failure = SuboperationError(name: "outer", index: 0, error: error)
            #expect(failure.localizedDescription.hasPrefix("“outer” failed: “c\(depth - 1)”: 1 operation failed: "))
        }
    }

    @Test("Part of a nested error that is still used stays whole when the rest is freed") func partsStayWhole() {
        var error: CompoundOperationError? = Self.nested(10, TestError.first)
        var inner = error?.suboperationErrors.first
        for _ in 0..<4 { inner = (inner?.error as? CompoundOperationError)?.suboperationErrors.first }
        error = nil
        #expect((inner?.error as? CompoundOperationError)?.leafErrors.map { $0 as? TestError } == [.first])
    }

    private struct Worded: LocalizedError {
        let errorDescription: String?

        init(_ text: String) { errorDescription = text }
    }

    /// The description of an error without one of its own, on Linux.
    private static let plain = "The operation could not be completed. (messages.Plain error 1.)"

    @Test(
        "A description inside another one ends with one mark, and is left out where it is empty",
        arguments: [
            ("The password is wrong.", ": The password is wrong."), ("wrong password", ": wrong password."),
            ("wrong password.\n", ": wrong password."), ("Really?", ": Really?"), ("Stop!", ": Stop!"),
            ("Wait…", ": Wait…"), ("Wait...", ": Wait..."), (plain, ": \(plain)"), ("It says “No.”", ": It says “No.”"),
            ("“404” is no “user”", ": “404” is no “user”."), ("disk full (sda)", ": disk full (sda)."), (")", ": )."),
            ("", " failed."), (" \n", " failed."),
        ])
    func marks(text: String, entry: String) {
        let error = Worded(text)
        let failure = SuboperationError(name: "a", index: 0, error: error)
        let explanation = "“a”" + (entry == " failed." ? "" : " failed") + entry
        #expect(failure.localizedDescription == explanation)
        let dependency = DependencyError.dependencyFailed(operation: "b", dependency: "a", error: error)
        let dependencyText = "The operation “b” did not run, because " + explanation
        #expect(dependency.localizedDescription == dependencyText)
        let compound = CompoundOperationError.suboperationFailure(name: "c", errors: [failure])
        #expect(compound.localizedDescription == "“c”: 1 operation failed: “a”" + entry)
        let outer = CompoundOperationError.cancelled(
            name: "d", errors: [SuboperationError(name: "c", index: 0, error: compound)])
        let besides = "“d” was cancelled. Besides, 1 operation failed: "
        #expect(outer.localizedDescription == besides + "“c”: 1 operation failed: “a”" + entry)
        let nested = Self.nested(1, dependency).localizedDescription
        #expect(nested == "“c0”: 1 operation failed: “n0”: " + dependencyText)
        // Deeper, only the ends of the tree are described.
        let deep = Self.nested(9, error).localizedDescription
        #expect(deep.hasSuffix(" 1 operation failed: “n0”" + entry), "\(deep)")
    }

    @Test("The entries of a list lose their full stop, except for the last, and keep any other mark") func listMarks() {
        for (texts, list) in [
            (["It broke.", "Really?", "Wait..."], "3 operations failed: “n0”: It broke; “n1”: Really?; “n2”: Wait..."),
            (["Wait...", Self.plain, ""], "3 operations failed: “n0”: Wait...; “n1”: \(Self.plain); “n2” failed."),
            (
                ["", "Wait…", "It broke.", "Stop!"],
                "4 operations failed: “n0” failed; “n1”: Wait…; “n2”: It broke; and 1 more."
            ),
        ] {
            let failures = texts.enumerated().map { SuboperationError(name: "n\($0)", index: $0, error: Worded($1)) }
            let error = CompoundOperationError.suboperationFailure(name: "c", errors: failures)
            #expect(error.localizedDescription == "“c”: " + list)
        }
    }

    @Test(
        "The reason of a cancellation is in parentheses, which are left out where it is empty",
        arguments: [
            ("The user left.", " (The user left)."), ("timeout", " (timeout)."), ("Really?", " (Really?)."),
            (plain, " (\(plain))."), ("", "."), ("\n", "."),
        ])
    func reasonMarks(reason: String, end: String) {
        let error = CompoundOperationError.cancelled(name: "c", errors: [], reason: Worded(reason))
        #expect(error.localizedDescription == "“c” was cancelled" + end)
        #expect(Self.nested(1, error).localizedDescription == "“c0”: 1 operation failed: “n0”: “c” was cancelled" + end)
        let failure = SuboperationError(name: "a", index: 0, error: Worded("Stop!"))
        let failed = CompoundOperationError.cancelled(name: "c", errors: [failure], reason: Worded(reason))
        let text = "“c” was cancelled\(end) Besides, 1 operation failed: “a”: Stop!"
        #expect(failed.localizedDescription == text)
    }

    @Test("A sentence that has named a compound does not name it again, and keeps any other name") func namedOnce() {
        let failure = SuboperationError(name: "login", index: 0, error: Worded("It broke."))
        let failed = CompoundOperationError.suboperationFailure(name: "Sync", errors: [failure])
        let cancelled = CompoundOperationError.cancelled(name: "Sync", errors: [failure])
        let stopped = CompoundOperationError.cancelled(name: "Sync", errors: [], reason: Worded("No time."))
        let end = "1 operation failed: “login”: It broke."
        for (name, error, text) in [
            ("Sync", failed, "failed: \(end)"), ("macro", failed, "failed: “Sync”: \(end)"),
            ("Sync", cancelled, "was cancelled. Besides, \(end)"), ("Sync", stopped, "was cancelled (No time)."),
            ("macro", stopped, "failed: “Sync” was cancelled (No time)."),
        ] {
            let dependent = "The operation “notify” did not run, because “\(name)”"
            let errors: [any Error] = [
                SuboperationError(name: name, index: 0, error: error),
                DependencyError.dependencyFailed(operation: "notify", dependency: name, error: error),
                ConditionError.prerequisiteFailed(
                    operation: "notify", condition: "done", prerequisite: name, error: error),
            ]
            #expect(
                errors.map(\.localizedDescription) == [
                    "“\(name)” \(text)", "\(dependent) \(text)",
                    "\(dependent), which its condition “done” needs, \(text)",
                ])
        }
        // One without a name has its index.
        for (name, text) in [("Sync", end), ("macro", "“Sync”: \(end)"), ("Sync 2", end)] {
            let failure = SuboperationError(name: name, index: 0, error: failed)
            let night = CompoundOperationError.suboperationFailure(name: "night", errors: [failure])
            #expect(night.localizedDescription == "“night”: 1 operation failed: “\(name)”: \(text)")
        }
        let deep = Self.nested(9, stopped).localizedDescription
        #expect(deep.hasSuffix(" 1 operation failed: “n0”: “Sync” was cancelled (No time)."), "\(deep)")
    }

    private enum Declined: Error {
        case card(number: Int)
        case wrapping(cause: any Error)
        case body(text: [UInt8])
    }

    private struct Printed: Error, CustomStringConvertible { let description = "relation “orders” does not exist" }

    @Test("An error without a sentence is described by its value, Foundation's by their sentence") func values() {
        func text(_ error: any Error) -> String {
            SuboperationError(name: "pay", index: 0, error: error).localizedDescription
        }
        #expect(text(Declined.card(number: 51)) == "“pay” failed: card(number: 51).")
        #expect(text(Printed()) == "“pay” failed: relation “orders” does not exist.")
        #expect(text(Declined.wrapping(cause: TestError.first)).contains("wrapping(cause: "))
        #expect(text(Declined.body(text: Array(repeating: 0, count: 100_000))).count < 600)
        let converted = NSError(domain: "Bank", code: 7, userInfo: [NSLocalizedDescriptionKey: "The bank is closed."])
        for error in [converted, CocoaError(.fileNoSuchFile), POSIXError(.EACCES)] as [any Error] {
            #expect(text(error).hasPrefix("“pay” failed: \(error.localizedDescription.dropLast())"))
        }
    }

    @Test("A chain of cancellations that are each other's reason is described in linear time") func reasonOfReason() {
        var error = CompoundOperationError.cancelled(name: "first", errors: [], reason: TestError.first)
        for level in 0..<TestExtent.choose(2_000, long: 20_000) {
            error = .cancelled(name: "c\(level)", errors: [], reason: error)
        }
        // Exponential cost would never end.
        #expect(error.localizedDescription.count < 1_000 && (error as NSError).localizedDescription.count < 1_000)
        #expect(error.leafErrors.map { $0 as? TestError } == [.first] && !error.isCancellation)
    }

    @Test("A description asks the innermost error a few times, however deep that is") func describingIsBounded() {
        for depth in [1, 2, 4, 8, 16, 32, 1_000] {
            let described = Described()
            let error = Self.nested(depth, described)
            _ = error.errorDescription
            #expect(described.count.value == 1)
            _ = error.localizedDescription
            #expect(described.count.value < 40)
        }
    }

    @Test("An NSError has the ends of the tree where its conversion stops") func conversionHasLeaves() throws {
        var error = Self.nested(40, TestError.second).nsError
        var depth = 0
        while error.domain == CompoundOperationError.errorDomain {
            depth += 1
            let all = try #require(error.userInfo[CompoundOperationError.underlyingErrorsKey] as? [NSError])
            #expect(all.count == 1)
            error = try #require(all.first)
        }
        #expect(depth > 10 && error.domain.hasSuffix("TestError"))
    }
}
