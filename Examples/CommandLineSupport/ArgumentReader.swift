/// A mistake in the arguments, with a sentence that says what was expected.
package struct UsageError: Error, Equatable {
    package let message: String

    package init(message: String) {
        self.message = message
    }
}

/// Reads the arguments of a command one after the other. A pure value: it looks at nothing but the arguments.
///
/// Values are given as `--count 1000` or `--count=1000`; after `--` everything is an operand.
package struct ArgumentReader {
    package enum Argument {
        /// An option, without the value that may be attached to it.
        case option(String)
        case operand(String)
    }

    private var remaining: ArraySlice<String>
    private var attachedValue: String?
    private var areOptionsOver = false
    private let expectation: (String) -> String

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - arguments: The arguments, without the name of the executable.
    ///   - expectation: Returns what is expected as the value of an option, for sentences.
    package init(_ arguments: [String], expectation: @escaping (_ option: String) -> String) {
        remaining = arguments[...]
        self.expectation = expectation
    }

    /// Returns the next argument, or `nil` at the end. A value that was not asked for counts as an argument.
    package mutating func next() -> Argument? {
        guard let argument = remaining.popFirst() else { return nil }
        if areOptionsOver { return .operand(argument) }
        if argument == "--" {
            areOptionsOver = true
            return next()
        }
        guard argument.hasPrefix("-"), argument != "-" else { return .operand(argument) }
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        attachedValue = parts.count == 2 ? parts[1] : nil
        return .option(parts[0])
    }

    /// Returns the value of the option that was read last.
    package mutating func value(of option: String) throws(UsageError) -> String {
        if let attachedValue { return attachedValue }
        guard let value = remaining.popFirst() else {
            throw UsageError(message: "\(option) is missing its value: expected \(expectation(option)).")
        }
        return value
    }

    /// Returns the value of the option that was read last, as a whole number of a range.
    package mutating func number(of option: String, in range: ClosedRange<Int>) throws(UsageError) -> Int {
        let text = try value(of: option)
        guard let number = Int(text), range.contains(number) else { throw invalid(text, for: option) }
        return number
    }

    /// Throws if the option that was read last has a value attached to it.
    package func expectNoValue(of option: String) throws(UsageError) {
        if attachedValue != nil { throw UsageError(message: "\(option) takes no value.") }
    }

    /// Returns the error of a value that the option does not take.
    package func invalid(_ text: String, for option: String) -> UsageError {
        UsageError(message: "“\(text)” is no value for \(option): expected \(expectation(option)).")
    }

    /// Returns what is expected of a number, for sentences.
    package static func expectation(of range: ClosedRange<Int>) -> String {
        "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }
}
