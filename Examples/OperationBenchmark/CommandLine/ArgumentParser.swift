/// A mistake in the arguments, with a sentence that says what was expected.
struct UsageError: Error, Equatable {
    let message: String
}

/// Turns the arguments into a command. A pure value: it looks at nothing but the arguments.
///
/// Values are given as `--count 1000` or `--count=1000`. `--help` and `--list` answer immediately, whatever follows.
struct ArgumentParser {
    private var remaining: ArraySlice<String>
    private var options = Options()
    private var probe: MemoryProbe.Kind?

    static func parse(_ arguments: [String]) throws(UsageError) -> Command {
        var parser = ArgumentParser(remaining: arguments[...])
        return try parser.command()
    }

    private init(remaining: ArraySlice<String>) {
        self.remaining = remaining
    }

    private mutating func command() throws(UsageError) -> Command {
        while let argument = remaining.popFirst() {
            guard argument.hasPrefix("-") else {
                throw UsageError(message: "“\(argument)” is too much: expected options only, as in --only B2.")
            }
            if let answer = try option(argument) { return answer }
        }
        if let probe { return .probe(MemoryProbe(kind: probe, count: options.count)) }
        return .run(options)
    }

    /// Takes in one option with its value. Returns a command if the option is one in itself.
    private mutating func option(_ argument: String) throws(UsageError) -> Command? {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = parts[0]
        let attached = parts.count == 2 ? parts[1] : nil

        switch name {
        case "--only":
            options.only.append(try caseName(value(of: name, attached)))
        case "--count":
            options.count = try number(value(of: name, attached), in: Scale.counts, for: name)
        case "--rounds":
            options.rounds = try number(value(of: name, attached), in: Options.roundCounts, for: name)
        case "--json":
            let path = try value(of: name, attached)
            if path.isEmpty { throw Self.wrong(path, for: name) }
            options.json = path
        case MemoryProbe.argument:
            let text = try value(of: name, attached)
            guard let kind = MemoryProbe.Kind(rawValue: text) else { throw Self.wrong(text, for: name) }
            probe = kind
        case "--markdown", "--check", "--list", "--help", "-h":
            if attached != nil { throw UsageError(message: "\(name) takes no value.") }
            switch name {
            case "--markdown": options.isMarkdown = true
            case "--check": options.isCheck = true
            case "--list": return .list
            default: return .help
            }
        default:
            throw UsageError(
                message: "Unknown option “\(name)”: expected --only, --count, --rounds, --json, --markdown, --check, "
                    + "--list or --help.")
        }
        return nil
    }

    private mutating func value(of name: String, _ attached: String?) throws(UsageError) -> String {
        if let attached { return attached }
        guard let value = remaining.popFirst() else {
            throw UsageError(message: "\(name) is missing its value: expected \(Self.expectation(of: name)).")
        }
        return value
    }

    private static func expectation(of name: String) -> String {
        switch name {
        case "--only": "one of " + Case.all.map(\.id).joined(separator: ", ")
        case "--count": expectation(of: Scale.counts)
        case "--rounds": expectation(of: Options.roundCounts)
        case "--json": "a file to write to"
        default: "one of " + MemoryProbe.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        }
    }

    private static func expectation(of range: ClosedRange<Int>) -> String {
        "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }

    private func caseName(_ text: String) throws(UsageError) -> String {
        let name = text.uppercased()
        if Case.all.contains(where: { $0.id == name }) { return name }
        throw UsageError(message: "Unknown case “\(text)”: expected \(Self.expectation(of: "--only")).")
    }

    private func number(_ text: String, in range: ClosedRange<Int>, for name: String) throws(UsageError) -> Int {
        guard let number = Int(text), range.contains(number) else { throw Self.wrong(text, for: name) }
        return number
    }

    private static func wrong(_ text: String, for name: String) -> UsageError {
        UsageError(message: "“\(text)” is no value for \(name): expected \(expectation(of: name)).")
    }
}
