import CommandLineSupport

/// Turns the arguments into a command. `--help` and `--list` are answered immediately, whatever follows.
struct ArgumentParser {
    private var arguments: ArgumentReader
    private var options = Options()
    private var probe: MemoryProbe.Kind?

    static func parse(_ arguments: [String]) throws(UsageError) -> Command {
        var parser = ArgumentParser(arguments: ArgumentReader(arguments, expectation: expectation(of:)))
        return try parser.command()
    }

    private init(arguments: ArgumentReader) {
        self.arguments = arguments
    }

    private mutating func command() throws(UsageError) -> Command {
        while let argument = arguments.next() {
            switch argument {
            case .option(let name): if let answer = try option(name) { return answer }
            case .operand(let operand):
                throw UsageError(message: "“\(operand)” is too much: expected options only, as in --only flat.")
            }
        }
        if let probe { return .probe(MemoryProbe(kind: probe, count: options.count)) }
        return .run(options)
    }

    /// Takes in one option with its value. Returns a command if the option is one in itself.
    private mutating func option(_ name: String) throws(UsageError) -> Command? {
        switch name {
        case "--only": options.only.append(try caseName(of: name))
        case "--count": options.count = try arguments.number(of: name, in: Scale.counts)
        case "--rounds": options.rounds = try arguments.number(of: name, in: Options.roundCounts)
        case "--json":
            let path = try arguments.value(of: name)
            if path.isEmpty { throw arguments.invalid(path, for: name) }
            options.json = path
        case MemoryProbe.argument:
            let text = try arguments.value(of: name)
            guard let kind = MemoryProbe.Kind(rawValue: text) else { throw arguments.invalid(text, for: name) }
            probe = kind
        case "--markdown", "--check", "--list", "--help", "-h":
            try arguments.expectNoValue(of: name)
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

    private static func expectation(of name: String) -> String {
        switch name {
        case "--only": "one of " + Case.all.map(\.id).joined(separator: ", ")
        case "--count": ArgumentReader.expectation(of: Scale.counts)
        case "--rounds": ArgumentReader.expectation(of: Options.roundCounts)
        case "--json": "a file to write to"
        default: "one of " + MemoryProbe.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        }
    }

    private mutating func caseName(of name: String) throws(UsageError) -> String {
        let text = try arguments.value(of: name)
        if Case.all.contains(where: { $0.id == text }) { return text }
        throw UsageError(message: "Unknown case “\(text)”: expected \(Self.expectation(of: name)).")
    }
}
