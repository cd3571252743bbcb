import CommandLineSupport

/// Turns the arguments into a command. `--help` and `--list` are answered immediately, whatever follows.
struct ArgumentParser {
    private var arguments: ArgumentReader
    private var options = Options()
    private var probe: MemoryProbe.Kind?
    private var instructionProbe: InstructionCase?
    private var areInstructionsCounted = false
    /// The first option that has no meaning where instructions are counted.
    private var timingOption: String?

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
        if areInstructionsCounted { return .instructions(try instructionOptions()) }
        try expectCases(Case.all.map(\.id), where: "")
        if let probe { return .probe(MemoryProbe(kind: probe, count: options.count)) }
        if let instructionProbe {
            return .instructionProbe(InstructionProbe(id: instructionProbe.id, count: options.count))
        }
        return .run(options)
    }

    private func instructionOptions() throws(UsageError) -> InstructionOptions {
        let argument = InstructionOptions.argument
        if let timingOption {
            throw UsageError(
                message: "\(timingOption) is not for \(argument): expected --only, --rounds or --markdown.")
        }
        try expectCases(InstructionCase.all.map(\.id), where: " for \(argument)")
        return InstructionOptions(only: options.only, rounds: options.rounds, isMarkdown: options.isMarkdown)
    }

    /// Throws unless the cases of `--only` are among these. The other options decide which there are, so it comes last.
    private func expectCases(_ names: [String], where place: String) throws(UsageError) {
        guard let unknown = options.only.first(where: { !names.contains($0) }) else { return }
        let expected = "one of " + names.joined(separator: ", ")
        throw UsageError(message: "Unknown case “\(unknown)”\(place): expected \(expected).")
    }

    /// Takes in one option with its value. Returns a command if the option is one in itself.
    private mutating func option(_ name: String) throws(UsageError) -> Command? {
        if Self.timingOptions.contains(name) { timingOption = timingOption ?? name }
        switch name {
        case "--only": options.only.append(try arguments.value(of: name))
        case "--count": options.count = try arguments.number(of: name, in: Scale.counts)
        case "--rounds": options.rounds = try arguments.number(of: name, in: Options.roundCounts)
        case "--json", "--compare":
            let path = try arguments.value(of: name)
            if path.isEmpty { throw arguments.invalid(path, for: name) }
            if name == "--json" { options.json = path } else { options.compared = path }
        case MemoryProbe.argument:
            let text = try arguments.value(of: name)
            guard let kind = MemoryProbe.Kind(rawValue: text) else { throw arguments.invalid(text, for: name) }
            probe = kind
        case InstructionProbe.argument:
            let text = try arguments.value(of: name)
            guard let item = InstructionCase.named(text) else { throw arguments.invalid(text, for: name) }
            instructionProbe = item
        case InstructionOptions.argument, "--markdown", "--check", "--list", "--help", "-h":
            try arguments.expectNoValue(of: name)
            switch name {
            case InstructionOptions.argument: areInstructionsCounted = true
            case "--markdown": options.isMarkdown = true
            case "--check": options.isCheck = true
            case "--list": return .list
            default: return .help
            }
        default:
            throw UsageError(
                message:
                    "Unknown option “\(name)”: expected --only, --count, --rounds, --json, --compare, --markdown, --check, "
                    + "--instructions, --list or --help.")
        }
        return nil
    }

    private static let timingOptions = [
        "--count", "--json", "--compare", "--check", MemoryProbe.argument, InstructionProbe.argument,
    ]

    private static func expectation(of name: String) -> String {
        switch name {
        case "--only":
            "one of " + Case.all.map(\.id).joined(separator: ", ") + "; or, with \(InstructionOptions.argument), of "
                + InstructionCase.all.map(\.id).joined(separator: ", ")
        case "--count": ArgumentReader.expectation(of: Scale.counts)
        case "--rounds": ArgumentReader.expectation(of: Options.roundCounts)
        case "--json": "a file to write to"
        case "--compare": "a file that --json wrote"
        case InstructionProbe.argument: "one of " + InstructionCase.all.map(\.id).joined(separator: ", ")
        default: "one of " + MemoryProbe.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        }
    }
}
