import Foundation
import OperationKit
import OperationKitTestSupport
import Testing

/// Errors that are inside other errors, to any depth.
@Suite("Nested errors", .hangGuard) struct NestedErrorTests {
    /// Counts how often it is described.
    private final class Described: LocalizedError, @unchecked Sendable {
        let count = Shared(0)
        var errorDescription: String? {
            count.value += 1
            return "It broke."
        }
    }

    /// Compounds inside compounds. Every second level is an operation that waited for the compound inside.
    private static func nested(
        _ depth: Int, _ innermost: any Error, isMixed: Bool = false
    ) -> CompoundOperationError {
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
            let depth = TestExtent.choose(4_000, long: 10_000)
            let error = Self.nested(depth, TestError.first, isMixed: isMixed)
            #expect(error.localizedDescription.count < 1_000)
            #expect(error.nsError.localizedDescription == error.errorDescription)
            #expect(error.leafErrors.count == 1)
            let failure = SuboperationError(name: "outer", index: 0, error: error)
            #expect(failure.localizedDescription.hasPrefix("“outer” failed: “c\(depth - 1)”: 1 operation failed: "))
        }
    }

    @Test("Part of a nested error that is still used stays whole when the rest is freed")
    func partsStayWhole() {
        var error: CompoundOperationError? = Self.nested(10, TestError.first)
        var inner = error?.suboperationErrors.first
        for _ in 0..<4 { inner = (inner?.error as? CompoundOperationError)?.suboperationErrors.first }
        error = nil
        #expect((inner?.error as? CompoundOperationError)?.leafErrors.map { $0 as? TestError } == [.first])
    }

    @Test("A description names the errors at the ends of the tree, however deep they are")
    func aDescriptionNamesLeaves() {
        let described = Described()
        for (depth, isMixed) in [(1, false), (2, false), (5, false), (50, false), (51, true)] {
            let text = Self.nested(depth, described, isMixed: isMixed).localizedDescription
            #expect(text.contains("It broke") && text.hasSuffix(".") && !text.hasSuffix(".."), "\(text)")
        }
        #expect(
            Self.nested(2, described).localizedDescription
                == "“c1”: 1 operation failed: “c0”: 1 operation failed: “n0”: It broke.")
    }

    @Test("A description asks the innermost error for its own a few times, however deep that is")
    func describingIsBounded() {
        for depth in [1, 2, 4, 8, 16, 32, 1_000] {
            let described = Described()
            let error = Self.nested(depth, described)
            _ = error.errorDescription
            #expect(described.count.value == 1)
            _ = error.localizedDescription
            #expect(described.count.value < 40)
        }
    }

    @Test("A conversion to an NSError has the errors at the ends of the tree where it does not go deeper")
    func conversionHasLeaves() throws {
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
