import CommandLineSupport

/// Turns the arguments into a command.
///
/// Options may stand before and after the scenario. `--help`, `--version` and `--list` are answered immediately, whatever
/// follows.
struct ArgumentParser {
    private var arguments: ArgumentReader
    private var options = Options()
    private var operands: [String] = []
    private var isInteractive = false

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
            case .operand(let operand): operands.append(operand)
            }
        }
        if let svg = options.svg, svg == options.trace {
            throw UsageError(message: "“\(svg)” is given twice: expected different files for --svg and --trace.")
        }
        if options.isMermaid, options.showsLog {
            throw UsageError(message: "--mermaid prints a chart and nothing else: expected no --log.")
        }
        return isInteractive ? try interactiveCommand() : try scenarioCommand()
    }

    /// Takes in one option with its value. Returns a command if the option is one in itself.
    private mutating func option(_ name: String) throws(UsageError) -> Command? {
        switch name {
        case "--mode": options.mode = try mode(of: name)
        case "--width": options.width = try arguments.number(of: name, in: Options.widths)
        case "--speed": options.speed = try speed(of: name)
        case "--svg": options.svg = try file(of: name)
        case "--trace": options.trace = try file(of: name)
        case "--no-color", "--log", "--mermaid", "--interactive", "--help", "-h", "--version", "--list":
            try arguments.expectNoValue(of: name)
            switch name {
            case "--no-color": options.allowsColor = false
            case "--log": options.showsLog = true
            case "--mermaid": options.isMermaid = true
            case "--interactive": isInteractive = true
            case "--version": return .version
            case "--list": return .list
            default: return .help
            }
        default:
            throw UsageError(
                message: "Unknown option “\(name)”: expected --mode, --width, --speed, --svg, --trace, --mermaid, "
                    + "--log, --no-color, --interactive, --list, --help or --version.")
        }
        return nil
    }

    private static func expectation(of name: String) -> String {
        switch name {
        case "--mode": "serial, concurrent or both"
        case "--svg", "--trace": "a file to write"
        case "--width": ArgumentReader.expectation(of: Options.widths)
        default: "a number from 0.01 to 1000, such as 2 for twice as fast"
        }
    }

    private mutating func mode(of name: String) throws(UsageError) -> Mode {
        let text = try arguments.value(of: name)
        guard let mode = Mode(rawValue: text) else { throw arguments.invalid(text, for: name) }
        return mode
    }

    private mutating func file(of name: String) throws(UsageError) -> String {
        let path = try arguments.value(of: name)
        if path.isEmpty { throw arguments.invalid(path, for: name) }
        return path
    }

    private mutating func speed(of name: String) throws(UsageError) -> Double {
        let text = try arguments.value(of: name)
        guard let speed = Double(text), Options.speeds.contains(speed) else { throw arguments.invalid(text, for: name) }
        return speed
    }

    private func interactiveCommand() throws(UsageError) -> Command {
        if let operand = operands.first {
            throw UsageError(message: "“\(operand)” is too much: expected no scenario with --interactive.")
        }
        if options.mode == .both {
            throw UsageError(message: "--interactive has one queue: expected --mode serial or --mode concurrent.")
        }
        if options.hasDrawing || options.showsLog {
            throw UsageError(
                message: "--interactive draws on the terminal: expected no --svg, --trace, --mermaid or --log.")
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
        if options.showsLog { throw UsageError(message: "files has no log: expected no --log.") }
        return .files(directory: operands[1], options)
    }
}
