import Foundation

/// An error that carries other errors, which may carry others in turn, to any depth.
///
/// Texts and `NSError`s of such errors are made to a certain depth only. So their cost is bounded, and so is the stack
/// that they take. They are not made of the `localizedDescription` of what is inside, which Foundation takes from the
/// `userInfo`: that would convert all that is inside, once more at each level.
protocol NestingError: LocalizedError, CustomNSError {
    /// The errors inside, and the names of the operations that ended with them.
    ///
    /// - Parameter count: How many there are to be at most.
    func errorsInside(atMost count: Int) -> [(name: String, error: any Error)]

    /// The description.
    ///
    /// - Parameter depth: How many levels of errors inside to spell out. At 0 and below there is no recursion.
    func text(depth: Int) -> String

    /// What the `NSError` has.
    ///
    /// - Parameter depth: How many levels of errors inside to convert. At 0 and below there is no recursion.
    func userInfo(depth: Int) -> [String: Any]
}

extension NestingError {
    /// The depth of the description of an error.
    static var textDepth: Int { 3 }

    /// The depth of the conversion of an error.
    static var conversionDepth: Int { 16 }

    func nsError(depth: Int) -> NSError {
        NSError(domain: Self.errorDomain, code: errorCode, userInfo: userInfo(depth: depth))
    }
}

extension Error {
    /// The description of an error that is inside another one.
    ///
    /// - Parameter depth: As of ``NestingError/text(depth:)``.
    func description(depth: Int) -> String {
        if let error = self as? any NestingError { return error.text(depth: depth) }
        return (self as? any LocalizedError)?.errorDescription ?? localizedDescription
    }

    /// The end of a sentence that tells of this error inside another one: a colon and the description, if that is spelled
    /// out, and a full stop.
    func explanation(depth: Int) -> String {
        if depth <= 0, self is any NestingError { return "." }
        return ": " + description(depth: depth - 1)
    }

    /// An error that is inside another one, as Objective-C would see it.
    ///
    /// - Parameter depth: As of ``NestingError/userInfo(depth:)``.
    func asNSError(depth: Int) -> NSError {
        (self as? any NestingError)?.nsError(depth: depth) ?? self as NSError
    }
}

extension String {
    /// A sentence that becomes part of another one.
    var withoutFullStop: String {
        hasSuffix(".") ? String(dropLast()) : self
    }
}
