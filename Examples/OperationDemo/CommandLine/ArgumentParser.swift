/// A mistake in the arguments, with a sentence that says what was expected.
struct UsageError: Error, Equatable {
    let message: String
}

/// Turns the arguments into a command. A pure value: it looks at nothing but the arguments.
///
/// Options may stand before and after the scenario, as `--width 4` or `--width=4`; after `--` everything is an operand.
/// `--help`, `--version` and `--list` answer immediately, whatever follows.
struct ArgumentParser {
    private var remaining: ArraySlice<String>
    private var options = Options()
    private var operands: [String] = []
    private var isInteractive = false

    static func parse(_ arguments: [String]) throws(UsageError) -> Command {
        var parser = ArgumentParser(remaining: arguments[...])
        return try parser.command()
    }

    private init(remaining: ArraySlice<String>) {
        self.remaining = remaining
    }

    private mutating func command() throws(UsageError) -> Command {
        while let argument = remaining.popFirst() {
            if argument == "--" {
                operands += remaining
                remaining = []
            } else if argument.hasPrefix("-") && argument != "-" {
                if let answer = try option(argument) { return answer }
            } else {
                operands.append(argument)
            }
        }
        return isInteractive ? try interactiveCommand() : try scenarioCommand()
    }

    /// Takes in one option with its value. Returns a command if the option is one in itself.
    private mutating func option(_ argument: String) throws(UsageError) -> Command? {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = parts[0]
        let attached = parts.count == 2 ? parts[1] : nil

        switch name {
        case "--mode":
            options.mode = try mode(value(of: name, attached))
        case "--width":
            options.width = try width(value(of: name, attached))
        case "--speed":
            options.speed = try speed(value(of: name, attached))
        case "--no-color", "--interactive", "--help", "-h", "--version", "--list":
            if attached != nil { throw UsageError(message: "\(name) takes no value.") }
            switch name {
            case "--no-color": options.allowsColor = false
            case "--interactive": isInteractive = true
            case "--version": return .version
            case "--list": return .list
            default: return .help
            }
        default:
            throw UsageError(
                message: "Unknown option “\(name)”: expected --mode, --width, --speed, --no-color, --interactive, "
                    + "--list, --help or --version.")
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
        case "--mode": "serial, concurrent or both"
        case "--width": "a whole number from \(Options.widths.lowerBound) to \(Options.widths.upperBound)"
        default: "a number from 0.01 to 1000, such as 2 for twice as fast"
        }
    }

    private func mode(_ text: String) throws(UsageError) -> Mode {
        guard let mode = Mode(rawValue: text) else { throw Self.wrong(text, for: "--mode") }
        return mode
    }

    private func width(_ text: String) throws(UsageError) -> Int {
        guard let width = Int(text), Options.widths.contains(width) else { throw Self.wrong(text, for: "--width") }
        return width
    }

    private func speed(_ text: String) throws(UsageError) -> Double {
        guard let speed = Double(text), Options.speeds.contains(speed) else { throw Self.wrong(text, for: "--speed") }
        return speed
    }

    private static func wrong(_ text: String, for name: String) -> UsageError {
        UsageError(message: "“\(text)” is no value for \(name): expected \(expectation(of: name)).")
    }

    private func interactiveCommand() throws(UsageError) -> Command {
        if let operand = operands.first {
            throw UsageError(message: "“\(operand)” is too much: expected no scenario with --interactive.")
        }
        if options.mode == .both {
            throw UsageError(message: "--interactive has one queue: expected --mode serial or --mode concurrent.")
        }
        return .interactive(options)
    }

    private func scenarioCommand() throws(UsageError) -> Command {
        guard let name = operands.first else { return .scenario(.tour, options) }
        guard let scenario = Scenario(rawValue: name) else {
            let names = Scenario.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError(message: "Unknown scenario “\(name)”: expected one of \(names).")
        }
        let operandCount = scenario == .files ? 2 : 1
        if operands.count > operandCount {
            throw UsageError(
                message: "“\(operands[operandCount])” is too much: expected nothing after “\(scenario.synopsis)”.")
        }
        guard scenario == .files else { return .scenario(scenario, options) }

        if operands.count < 2 || operands[1].isEmpty {
            throw UsageError(message: "files is missing its operand: expected a directory, as in “files Sources”.")
        }
        if options.mode == .both {
            throw UsageError(message: "files reads each file once: expected --mode serial or --mode concurrent.")
        }
        return .files(directory: operands[1], options)
    }
}
