public import Foundation

/// The failure of one child of a compound.
public struct SuboperationError:
    LocalizedError, CustomNSError, CustomStringConvertible, CancellableError, NestingError
{
    /// The name of the child, or its type and index.
    public let name: String
    /// The place of the child in the order in which children were added, from 0.
    public internal(set) var index: Int
    /// The error that the child ended with.
    public var error: any Error { outcomeError.shown }
    /// How many children the compound had, where known.
    public internal(set) var siblingCount: Int?
    /// How many other children did not run because of this failure.
    ///
    /// They required the success of the child, or of one that did not run either, or are composites in which nothing
    /// else went wrong. Each child is counted once, for the one of its dependencies that was added first.
    public internal(set) var blockedCount: Int

    /// The error with which a composite ends that passes this failure on as its own.
    var outcomeError: any Error { box.error }

    private var box: ErrorBox

    /// Describes the failure of a child.
    ///
    /// - Parameters:
    ///   - name: The name of the child.
    ///   - index: Its place among the children, from 0.
    ///   - error: What it failed with.
    ///   - siblingCount: How many children there were, itself included.
    ///   - blockedCount: How many of the others did not run because of the failure.
    public init(name: String, index: Int, error: any Error, siblingCount: Int? = nil, blockedCount: Int = 0) {
        (self.name, self.index, self.siblingCount, self.blockedCount) = (name, index, siblingCount, blockedCount)
        box = ErrorBox(error)
    }

    /// The same as `localizedDescription`, for `print` and logs.
    public var description: String { text(depth: Self.textDepth) }

    /// Whether this is the same report of the same failure.
    func isSame(as other: SuboperationError) -> Bool { box === other.box }

    /// The failures among the outcomes of numbered parts, in their order. A cancellation is no failure.
    static func failures(of outcomes: [(any Error)?], noun: String) -> [SuboperationError] {
        outcomes.enumerated().compactMap { index, error in
            guard let error, !error.isCancellation else { return nil }
            return SuboperationError(
                name: "\(noun) \(index)", index: index, error: error, siblingCount: outcomes.count)
        }
    }

    var inside: NamedError? { (name, error) }

    package func text(depth: Int) -> String {
        "“\(name)”" + error.explanation(of: name, depth: depth)
    }
}

extension Error {
    /// Text that follows the name of an operation that ended with this error: that it was cancelled, or that it failed,
    /// with the description if there is one and the depth allows it, and a full stop. Where the error is that of a
    /// compound with the name, the description does not repeat it.
    func explanation(of name: String? = nil, depth: Int) -> String {
        if isCancellation { return " was cancelled." }
        if depth <= 0, self is any NestingError { return " failed." }
        if let name, let error = self as? CompoundOperationError, error.isOfCompound(called: name) {
            return error.predicate(depth: depth - 1)
        }
        let description = description(depth: depth - 1)
        return description.isEmpty ? " failed." : " failed: " + description
    }

    /// The entry in a list of failures for an operation that ended with this error, as a sentence. The description of
    /// a compound begins with its own name, to which its index is added if it has none, or with that of another one, whose
    /// error was passed on.
    func entry(of name: String, depth: Int) -> String {
        if depth < 0 || !(self is any NestingError), isCancellation { return "“\(name)” was cancelled." }
        let description = description(depth: depth)
        if let error = self as? CompoundOperationError, error.isOfCompound(called: name) {
            return "“\(name)" + String(description.unicodeScalars.dropFirst(error.name.unicodeScalars.count + 1))
        }
        return description.isEmpty ? "“\(name)” failed." : "“\(name)”: " + description
    }
}

extension SuboperationError {
    /// What a failure consists of. Errors of compounds that are nested deep are freed here without recursion: by nested
    /// calls, a few thousand of them would overflow the stack of a worker thread.
    private final class ErrorBox: @unchecked Sendable {
        private(set) var error: any Error

        init(_ error: any Error) {
            self.error = error
        }

        deinit {
            guard error is any NestingError else { return }
            var errors = [takeError()]
            // What is inside is held by nothing else then, unless it is used elsewhere.
            while case (var failures, let others)? = errors.popLast().map(Self.inside) {
                errors += others
                while var failure = failures.popLast() {
                    if isKnownUniquelyReferenced(&failure.box) { errors.append(failure.box.takeError()) }
                }
            }
        }

        private func takeError() -> any Error {
            defer { error = CancellationError() }
            return error
        }

        /// What is inside an error, which is released when this returns.
        private static func inside(_ error: any Error) -> (failures: [SuboperationError], others: [any Error]) {
            if let failure = error as? SuboperationError { return ([failure], []) }
            guard let error = error as? CompoundOperationError else {
                return ([], (error as? any NestingError)?.errorsInside(atMost: 1).map(\.error) ?? [])
            }
            if case .cancelled(_, _, let reason?) = error { return (error.suboperationErrors, [reason]) }
            return (error.suboperationErrors, [])
        }
    }
}
