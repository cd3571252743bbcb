public import Foundation

/// How a compound failed: which of its children did, and with which errors.
///
/// The errors come in the order in which the children were added. As an `NSError` it has the domain
/// `OperationKit.CompoundOperationError`, the codes given below, a localized description, the first underlying error
/// under `NSUnderlyingErrorKey` and all of them under ``underlyingErrorsKey``.
public enum CompoundOperationError: Error {
    /// Children failed, and the compound was not cancelled. Code 1.
    case suboperationFailure(name: String, errors: [SuboperationError])
    /// The compound was cancelled. `errors` are the failures of children until then, `reason` is what
    /// `cancel(withError:)` was given. Code 2.
    case cancelled(name: String, errors: [SuboperationError], reason: (any Error)? = nil)
    /// Children wait for each other in a circle: each name on the path for the next one, the last one for the first.
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
    /// children.
    public var leafErrors: [any Error] {
        switch self {
        case .suboperationFailure(_, let errors), .cancelled(_, let errors, _):
            errors.flatMap { ($0.error as? CompoundOperationError)?.leafErrors ?? [$0.error] }
        case .dependencyCycle:
            [self]
        }
    }

    /// The error as an `NSError`, nested ones converted too.
    public var nsError: NSError {
        NSError(domain: Self.errorDomain, code: errorCode, userInfo: errorUserInfo)
    }
}

extension CompoundOperationError: LocalizedError, CustomNSError {
    /// `OperationKit.CompoundOperationError`
    public static var errorDomain: String { "OperationKit.CompoundOperationError" }

    /// The code documented at each case.
    public var errorCode: Int {
        switch self {
        case .suboperationFailure: 1
        case .cancelled: 2
        case .dependencyCycle: 3
        }
    }

    /// What happened: the name of the compound, how many of how many children failed, and which.
    public var errorDescription: String? {
        switch self {
        case .suboperationFailure(let name, let errors):
            "“\(name)”: \(Self.summary(of: errors))."
        case .cancelled(let name, let errors, let reason):
            "“\(name)” was cancelled"
                + (reason.map { " (\($0.localizedDescription.withoutFullStop))" } ?? "")
                + (errors.isEmpty ? "." : ". Before that, \(Self.summary(of: errors)).")
        case .dependencyCycle(let name, let path):
            "“\(name)” cannot run, because its operations wait for each other in a circle: "
                + (path + path.prefix(1)).map { "“\($0)”" }.joined(separator: " waits for ") + "."
        }
    }

    /// The localized description and the underlying errors. Where no child failed, the reason of the cancellation is
    /// the underlying error.
    public var errorUserInfo: [String: Any] {
        var userInfo = descriptionUserInfo
        let underlying = suboperationErrors.map { $0.error.asNSError }
        userInfo[NSUnderlyingErrorKey] = underlying.first ?? cancellationReason?.asNSError
        userInfo[Self.underlyingErrorsKey] = underlying
        return userInfo
    }

    private var cancellationReason: (any Error)? {
        if case .cancelled(_, _, let reason) = self { reason } else { nil }
    }

    /// How many descriptions of children a description spells out.
    private static let mostSpelledOut = 3

    private static func summary(of errors: [SuboperationError]) -> String {
        let operations = errors.count == 1 ? "operation" : "operations"
        let count =
            if let total = errors.first?.siblingCount {
                "\(errors.count) of \(total) \(total == 1 ? "operation" : "operations") failed"
            } else {
                "\(errors.count) \(operations) failed"
            }
        var parts = errors.prefix(mostSpelledOut).map {
            // A compound's description begins with its name.
            ($0.error is CompoundOperationError ? "" : "“\($0.name)”: ") + $0.error.localizedDescription.withoutFullStop
        }
        if errors.count > mostSpelledOut { parts.append("and \(errors.count - mostSpelledOut) more") }
        return count + (parts.isEmpty ? "" : ": " + parts.joined(separator: "; "))
    }
}

extension String {
    /// A sentence that becomes part of another one.
    fileprivate var withoutFullStop: String {
        hasSuffix(".") ? String(dropLast()) : self
    }
}

extension Error {
    /// The error as Objective-C would see it.
    var asNSError: NSError {
        if let error = self as? CompoundOperationError { return error.nsError }
        return self as NSError
    }
}
