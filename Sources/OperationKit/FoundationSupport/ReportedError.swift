package import Foundation

/// An error of the library, or of its other products: what Foundation asks of it follows from a code and a text.
package protocol ReportedError: LocalizedError, CustomNSError {
    /// The code, from 1, that is documented at each case.
    var numericCode: Int { get }

    /// Returns the description of this error.
    ///
    /// - Parameter depth: How many levels of errors inside to spell out. At 0 and below there is no recursion.
    /// - Returns: One sentence or several, each with its full stop.
    func text(depth: Int) -> String

    /// Returns the `userInfo` of this error as an `NSError`.
    ///
    /// - Parameter depth: How many levels of errors inside to convert. At 0 and below there is no recursion.
    /// - Returns: The description, and the errors inside, converted to that depth.
    func userInfo(depth: Int) -> [String: Any]

    /// The error inside, if there is one.
    var underlyingError: (any Error)? { get }

    /// What the description of an operation mentions that was cancelled for this reason.
    var remark: String? { get }
}

extension ReportedError {
    /// That of a type with one case.
    package var numericCode: Int { 1 }

    package var remark: String? { nil }

    package var underlyingError: (any Error)? { nil }

    /// The domain of the errors of this type: `OperationKit.` and the name of the type.
    public static var errorDomain: String { "OperationKit.\(self)" }

    /// The code that is documented at each case.
    public var errorCode: Int { numericCode }

    /// What happened, to which operation, and what to do about it.
    public var errorDescription: String? { text(depth: Self.textDepth) }

    /// The localized description, and the errors inside as the underlying ones.
    public var errorUserInfo: [String: Any] { userInfo(depth: Self.conversionDepth) }

    package func userInfo(depth: Int) -> [String: Any] {
        var userInfo = descriptionInfo
        if depth > 0 { userInfo[NSUnderlyingErrorKey] = underlyingError?.asNSError(depth: depth - 1) }
        return userInfo
    }

    /// What the `userInfo` of each error has: its description, and that it stands for a cancellation.
    var descriptionInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: text(depth: Self.textDepth)]
        if (self as? any CancellableError)?.isCancelled == true { info[cancellationKey] = true }
        return info
    }

    /// The depth of the description of an error.
    static var textDepth: Int { 3 }

    /// The depth of the conversion of an error.
    static var conversionDepth: Int { 16 }

    func nsError(depth: Int) -> NSError {
        NSError(domain: Self.errorDomain, code: numericCode, userInfo: userInfo(depth: depth))
    }
}

/// An error that carries other errors, which may carry others in turn, to any depth.
///
/// Texts and `NSError`s of such errors are made to a certain depth only. So their cost is bounded, and so is the stack
/// that they take. They are not made of the `localizedDescription` of what is inside, which Foundation takes from the
/// `userInfo`: that would convert all that is inside, once more at each level.
protocol NestingError: ReportedError, CancellableError {
    /// An error, with the name of the operation that ended with it.
    typealias NamedError = (name: String, error: any Error)

    /// The error inside; `nil` if there is none, or if there are several.
    var inside: NamedError? { get }

    /// Returns the first errors inside, at most `count`.
    func errorsInside(atMost count: Int) -> [NamedError]

    /// The error that decides whether this one stands for a cancellation: it does if that one does. `nil` if it does not.
    var decidingError: (any Error)? { get }

    /// Returns the error with the reason of a cancellation, if it says that something was cancelled, among other things, and not why.
    func adding(reason: any Error) -> (any Error)?

    // MARK: An error that an operation has because of others: of what it depends on, or of its children

    /// The error of the operation that went wrong first, if this error says so.
    var root: NamedError? { get }

    /// Whether another error says the same of the same operations, as far as can be seen: errors need not be comparable.
    func isSame(as other: any Error) -> Bool
}

extension NestingError {
    func errorsInside(atMost count: Int) -> [NamedError] { inside.map { [$0] } ?? [] }

    func adding(reason: any Error) -> (any Error)? { nil }

    var root: NamedError? { nil }

    func isSame(as other: any Error) -> Bool { false }

    var decidingError: (any Error)? { inside?.error }

    package var underlyingError: (any Error)? { inside?.error }

    /// Whether the error, or the one inside that it answers for, stands for a cancellation. Follows the errors inside
    /// without recursion.
    public var isCancelled: Bool {
        var error: any Error = self
        while let nesting = error as? any NestingError {
            guard let deciding = nesting.decidingError else { return false }
            error = deciding
        }
        return error.isCancellation
    }
}

extension Error {
    /// Returns the description of an error that is inside another one.
    ///
    /// - Parameter depth: As of ``NestingError/text(depth:)``.
    /// - Returns: The text of a nesting error to that depth, and the description of any other error as a sentence, or
    ///   as an empty text.
    func description(depth: Int) -> String {
        (self as? any NestingError)?.text(depth: depth) ?? eventText.asSentence
    }

    /// What the error says: its sentence, or that of Foundation, or else its value, for which Foundation has only a number. Of a long
    /// value the beginning is enough.
    package var eventText: String {
        let localized = self as? any LocalizedError
        if let text = localized?.errorDescription { return text }
        // Those that are declared in Swift, and converted by no code of their own.
        let isPlain =
            !(self is any CustomNSError) && localized?.failureReason == nil
            && (self as NSError).domain == String(reflecting: dynamicType)
        let text = isPlain ? "\(self)" : localizedDescription
        return text.utf8.count > 1_000 ? "\(text.prefix(500))…" : text
    }

    /// The type of the error. A continuation that is resumed with an `any Error` wraps it once more, so that its type is `any Error`.
    private var dynamicType: any Error.Type { type(of: self as any Error) }

    /// Returns an error that is inside another one as Objective-C would see it.
    ///
    /// - Parameter depth: As of ``NestingError/userInfo(depth:)``.
    /// - Returns: A nesting error converted to that depth, and any other error as Foundation converts it.
    func asNSError(depth: Int) -> NSError {
        (self as? any NestingError)?.nsError(depth: depth) ?? self as NSError
    }
}

extension String {
    /// The text with a full stop, unless it ends with a mark of its own, which may be inside parentheses or quotation
    /// marks. Empty, if there are only spaces.
    package var asSentence: String {
        let text = trimmingCharacters(in: .whitespacesAndNewlines)
        if text.isEmpty { return text }
        let end = text.last { !")”".contains($0) }
        return end.map { ".!?…".contains($0) } == true ? text : text + "."
    }

    /// A sentence that becomes part of another one. An ellipsis stays.
    var withoutFullStop: String {
        hasSuffix(".") && !hasSuffix("..") ? String(dropLast()) : self
    }
}

extension [String] {
    /// Sentences as the entries of a list that ends as the last of them does.
    var joinedAsList: String {
        (dropLast().map(\.withoutFullStop) + suffix(1)).joined(separator: "; ")
    }
}

/// An error that may stand for a cancellation: `isCancellation` reads its ``isCancelled``.
///
/// Conform errors of your own that say that work was stopped on purpose, or that wrap errors which may say so. The
/// library then treats them as it treats `CancellationError`, not as failures:
///
/// ```swift
/// enum DownloadError: CancellableError {
///     case stoppedByUser
///     case wrongChecksum
///
///     var isCancelled: Bool { self == .stoppedByUser }
/// }
/// ```
public protocol CancellableError: Error {
    /// Whether the error stands for a cancellation, and not for a failure.
    ///
    /// Read on any thread, and more than once; it always has to be the same.
    var isCancelled: Bool { get }
}

extension Error {
    /// Whether the error stands for a cancellation, and not for a failure.
    ///
    /// Check this one property wherever cancellations are to be ignored, whatever was cancelled:
    ///
    /// ```swift
    /// let queue = OperationQueue()
    /// let save = ThrowingBlockOperation { /* … */ }
    /// do {
    ///     try await queue.run(save)
    /// } catch where error.isCancellation {
    ///     // Stopped on purpose: there is nothing to report.
    /// } catch {
    ///     print(error.localizedDescription)
    /// }
    /// ```
    ///
    /// It is true for
    ///
    /// - `CancellationError`,
    /// - ``CompoundOperationError/cancelled(name:errors:reason:)`` without failures of children, and without a reason or
    ///   with one that stands for a cancellation itself,
    /// - errors of the library that wrap such an error, ``DependencyError``, ``SuboperationError``, ``ConditionError`` and
    ///   ``RetryError/budgetExhausted(operation:attempts:error:)``, also as `NSError`s,
    /// - `URLError.cancelled` and `CocoaError.userCancelled`, also as `NSError`s,
    /// - errors of your own that are a ``CancellableError`` whose ``CancellableError/isCancelled`` is true.
    ///
    /// Wherever the library distinguishes between failures and cancellations, it reads this property. So a child of a
    /// ``CompoundOperation`` or an item of a ``CollectionOperation`` that ends with an error for which it is true has
    /// not failed.
    public var isCancellation: Bool {
        if self is CancellationError { return true }
        if let error = self as? any CancellableError { return error.isCancelled }
        if let error = self as? any CustomNSError {
            return isFoundationCancellation(domain: type(of: error).errorDomain, code: error.errorCode)
        }
        // Other Swift errors have a domain of their own.
        guard dynamicType is NSError.Type else { return false }
        let error = self as NSError
        return isFoundationCancellation(domain: error.domain, code: error.code)
            || error.userInfo[cancellationKey] as? Bool == true
    }
}

/// Has an error of the library stand for a cancellation also after its conversion, which on Linux leaves nothing else of it.
private let cancellationKey = "OperationKit.isCancellation"

/// Whether an error with this domain and code is one with which Foundation reports a cancellation. They are compared as
/// values, because `URLError` is declared in a module of its own on Linux.
private func isFoundationCancellation(domain: String, code: Int) -> Bool {
    switch (domain, code) {
    // `URLError.cancelled`, whose domain has its constant in that module, too, and `CocoaError.userCancelled`.
    case ("NSURLErrorDomain", -999), (NSCocoaErrorDomain, 3072): true
    // `CancellationError` that was converted. On Linux, an `NSError` does not remember what it was.
    case ("Swift.CancellationError", _): true
    default: false
    }
}
