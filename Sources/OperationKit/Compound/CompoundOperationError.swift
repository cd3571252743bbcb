public import Foundation

/// How a compound failed: which of its children did, and with which errors.
///
/// The errors come in the order in which the children were added. As an `NSError` it has the domain
/// `OperationKit.CompoundOperationError`, the codes given below, a localized description, the first underlying error
/// under `NSUnderlyingErrorKey` and all of them under ``underlyingErrorsKey``.
public enum CompoundOperationError:
    LocalizedError, CustomNSError, CustomStringConvertible, CancellableError, NestingError
{
    /// Children failed, and the compound was not cancelled. Code 1.
    case suboperationFailure(name: String, errors: [SuboperationError])
    /// The compound was cancelled. `errors` are the failures that children reported, before or after that, `reason` is what
    /// `cancel(withError:)` was given. Code 2.
    case cancelled(name: String, errors: [SuboperationError], reason: (any Error)? = nil)
    /// Children wait for each other in a cycle: each name on the path for the next one, the last one for the first.
    /// Code 3.
    case dependencyCycle(name: String, path: [String])

    /// The key under which an `NSError` has all underlying errors, as `[NSError]`, in the order of the children.
    public static let underlyingErrorsKey = "OperationKitUnderlyingErrors"

    /// The failures of children, in the order in which they were added.
    public var suboperationErrors: [SuboperationError] {
        switch self {
        case .suboperationFailure(_, let errors), .cancelled(_, let errors, _): errors
        case .dependencyCycle: []
        }
    }

    /// The errors at the ends of the tree: those of children that are compounds are replaced by the errors of their
    /// children, followed by the reason of the cancellation, if there is one that counts as a failure.
    public var leafErrors: [any Error] {
        var leaves: [any Error] = []
        var open: [any Error] = [self]
        while let error = open.popLast() {
            switch error as? CompoundOperationError {
            case .dependencyCycle, nil: leaves.append(error)
            case let compound?:
                // A compound's says itself, in its turn, whether there is a failure in it.
                if case .cancelled(_, _, let reason?) = compound,
                    reason is CompoundOperationError || !reason.isCancellation
                {
                    open.append(reason)
                }
                open += compound.suboperationErrors.reversed().map(\.error)
            }
        }
        return leaves
    }

    /// Returns the error without some of the failures, for ``CompoundOperation/childrenDidFinish(_:)``:
    ///
    /// ```swift
    /// final class Sync: CompoundOperation, @unchecked Sendable {
    ///     override func childrenDidFinish(_ error: CompoundOperationError?) throws {
    ///         if let error = error?.removingFailures(where: { $0.name == "thumbnails" }) { throw error }
    ///     }
    /// }
    /// ```
    ///
    /// The other failures keep their ``SuboperationError/siblingCount`` and ``SuboperationError/blockedCount``.
    ///
    /// - Parameter isRemoved: Returns whether a failure of a child of this compound does not count.
    /// - Returns: `nil` if no failure is left. A cancellation and a cycle stay.
    /// - Throws: What `isRemoved` throws.
    public func removingFailures(
        where isRemoved: (SuboperationError) throws -> Bool
    ) rethrows -> CompoundOperationError? {
        let rest = try suboperationErrors.filter { try !isRemoved($0) }
        return switch self {
        case .suboperationFailure(let name, _): rest.isEmpty ? nil : .suboperationFailure(name: name, errors: rest)
        case .cancelled(let name, _, let reason): .cancelled(name: name, errors: rest, reason: reason)
        case .dependencyCycle: self
        }
    }

    /// The error as an `NSError`, nested ones converted too. Where compounds are nested more than 16 levels deep, the
    /// errors at the ends of the tree stand for those below.
    public var nsError: NSError {
        nsError(depth: Self.conversionDepth)
    }

    /// The same as `localizedDescription`, for `print` and logs.
    public var description: String { text(depth: Self.textDepth) }

    package var numericCode: Int {
        switch self {
        case .suboperationFailure: 1
        case .cancelled: 2
        case .dependencyCycle: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .suboperationFailure(_, let errors): "“\(name)”: " + summary(of: errors, depth: depth)
        case .cancelled: "“\(name)”" + predicate(depth: depth)
        case .dependencyCycle(_, let path): (path == [name] ? "" : "“\(name)”: ") + Self.text(ofCycle: path)
        }
    }

    /// What the description says of the compound, for a sentence that begins with its name.
    func predicate(depth: Int) -> String {
        switch self {
        case .suboperationFailure(_, let errors): " failed: " + summary(of: errors, depth: depth)
        case .cancelled(_, let errors, let reason):
            " was cancelled" + (reason.flatMap { text(of: $0, depth: depth) } ?? "")
                + (errors.isEmpty ? "." : ". Besides, " + summary(of: errors, depth: depth))
        case .dependencyCycle(_, let path): " failed: " + Self.text(ofCycle: path)
        }
    }

    private static func text(ofCycle path: [String]) -> String {
        let names = path.map { "“\($0)”" }
        if names.count == 1 { return names[0] + " would wait for itself." }
        let text = "operations would wait for each other in a cycle"
        guard let first = names.first else { return text + "." }
        let waits = (names.dropFirst() + [first]).joined(separator: ", which waits for ")
        return text + ": \(first) waits for \(waits). Remove one of these dependencies."
    }

    package func userInfo(depth: Int) -> [String: Any] {
        var userInfo = descriptionInfo
        // The errors at the ends of the tree stand for what is deeper.
        let errors = depth > 0 ? suboperationErrors.map(\.error) : suboperationErrors.isEmpty ? [] : leafErrors
        let underlying = errors.map { $0.asNSError(depth: depth - 1) }
        userInfo[NSUnderlyingErrorKey] = underlying.first
        if case .cancelled(_, _, let reason?) = self, underlying.isEmpty, depth > 0 {
            userInfo[NSUnderlyingErrorKey] = reason.asNSError(depth: depth - 1)
        }
        userInfo[Self.underlyingErrorsKey] = underlying
        return userInfo
    }

    var inside: NamedError? { nil }

    func errorsInside(atMost count: Int) -> [NamedError] {
        suboperationErrors.prefix(count).map { ($0.name, $0.error) }
    }

    var decidingError: (any Error)? {
        guard case .cancelled(_, let errors, let reason) = self, errors.isEmpty else { return nil }
        return reason ?? CancellationError()
    }

    func adding(reason: any Error) -> (any Error)? {
        guard case .cancelled(let name, let errors, nil) = self, !errors.isEmpty else { return nil }
        return Self.cancelled(name: name, errors: errors, reason: reason)
    }

    private func text(of reason: any Error, depth: Int) -> String? {
        if depth <= 0, reason is any NestingError { return nil }
        // There is nothing to add unless the reason has words of its own. One that has others inside has, and they are not asked
        // twice, which would double at each level.
        let hasWords =
            reason is any NestingError || (reason as? any CancellableError & LocalizedError)?.errorDescription != nil
        if reason.isCancellation, !hasWords { return nil }
        let description = reason.description(depth: depth - 1)
        return description.isEmpty ? nil : " (\(description.withoutFullStop))"
    }

    /// How many descriptions of children a description spells out.
    private static let mostSpelledOut = 3

    /// How many children failed, and which, as a sentence.
    private func summary(of errors: [SuboperationError], depth: Int) -> String {
        let total = errors.first?.siblingCount
        let operations = (total ?? errors.count) == 1 ? "operation" : "operations"
        let count = "\(errors.count) \(total.map { "of \($0) " } ?? "")\(operations) failed"
        if depth < 0 || errors.isEmpty { return count + "." }
        if depth == 0 { return count + ": " + leaves.joinedAsList }
        var parts = errors.prefix(Self.mostSpelledOut).map {
            let entry = $0.error.entry(of: $0.name, depth: depth - 1)
            if $0.blockedCount == 0 { return entry }
            let cause = $0.error is CompoundOperationError ? "“\($0.name)”" : "it"
            let others = $0.blockedCount == 1 ? "1 other" : "\($0.blockedCount) others"
            return entry.withoutFullStop + "; \(others) did not run because of \(cause)."
        }
        if errors.count > Self.mostSpelledOut { parts.append("and \(errors.count - Self.mostSpelledOut) more.") }
        return count + ": " + parts.joinedAsList
    }

    /// The first errors at the ends of the tree, however deep they are.
    private var leaves: [String] {
        var texts: [String] = []
        var open: [NamedError] = [(name, self)]
        while texts.count < Self.mostSpelledOut, let (name, error) = open.popLast() {
            let inside = (error as? any NestingError)?.errorsInside(atMost: Self.mostSpelledOut) ?? []
            open += inside.reversed()
            if inside.isEmpty { texts.append(error.entry(of: name, depth: -1)) }
        }
        return texts
    }

    /// Whether it is the error of an operation itself that errors call so: by its name, or its type and index.
    func isOfCompound(called title: String) -> Bool {
        title == name || title.hasPrefix(name + " ") && title.dropFirst(name.count + 1).allSatisfy(\.isWholeNumber)
    }

    var name: String {
        switch self {
        case .suboperationFailure(let name, _), .cancelled(let name, _, _), .dependencyCycle(let name, _): name
        }
    }

    func isSame(as other: any Error) -> Bool {
        guard let first = suboperationErrors.first,
            let other = (other as? CompoundOperationError)?.suboperationErrors.first
        else { return false }
        return first.isSame(as: other)
    }
}

extension SkippedError {
    /// Returns what a composite ends with that has this outcome inside it, and ends with `error`: with the same cause, if
    /// it passes this outcome on; otherwise the error alone.
    func passingOnCause(in error: any Error) -> any Error {
        guard isPassedOn(as: error) else { return error }
        // A composite that has gone wrong itself, too, does not hold the cause.
        if case .cancelled(_, _, let reason?) = error as? CompoundOperationError, !reason.isCancellation {
            return error
        }
        return SkippedError(error: error, cause: cause)
    }

    /// Whether an operation that ends with this error passes on that of the skipped one.
    ///
    /// Names are not unique, so the error of an operation that did not run is passed on only if it is the same one, as
    /// far as can be seen: about the same operation, because of the same one, with the same kind of error.
    private func isPassedOn(as error: any Error) -> Bool {
        guard let own = self.error as? any NestingError else { return false }
        guard let other = error as? any NestingError, let root = other.root else { return own.isSame(as: error) }
        let leaves = (own as? CompoundOperationError)?.leafErrors ?? [own]
        return root.name == cause.name && leaves.contains { other.isSame(as: $0) }
    }
}

/// Why an operation could not become the child of a compound. The operation is untouched, and may be used elsewhere.
public enum CompoundAdditionError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// All children of the compound have finished, so it takes no more. Code 1.
    case compoundFinished(operation: String, compound: String)
    /// The operation is a child already, of this compound or of another one. Or a closure of the compound has made it,
    /// and it contains the compound, or is a composite that executes, and may wait for the compound. Code 2.
    case alreadyAdded(operation: String, compound: String)

    package var numericCode: Int {
        switch self {
        case .compoundFinished: 1
        case .alreadyAdded: 2
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .compoundFinished(let operation, let compound):
            "The operation “\(operation)” was not added to “\(compound)”, which has finished. Add it before the last child ends."
        case .alreadyAdded(let operation, let compound):
            "The operation “\(operation)” was not added to “\(compound)”: it is a child already, \(operation == compound ? "is or contains" : "contains") “\(compound)”, or may wait for “\(compound)”. Add a new operation, once, to one compound."
        }
    }
}
