import CommandLineSupport
import Foundation

/// The command-line tool as a function from arguments to an exit status.
enum Demo {
    static func run(_ arguments: [String]) async -> ExitStatus {
        let command: Command
        do {
            command = try ArgumentParser.parse(arguments)
        } catch {
            return refuse(error)
        }

        switch command {
        case .help:
            Console(allowsColor: false).print(Usage.help)
            return .success
        case .version:
            Console(allowsColor: false).print(Usage.version)
            return .success
        case .list:
            Console(allowsColor: false).print(Usage.list)
            return .success
        case .scenario(let scenario, let options):
            let console = Console(allowsColor: options.allowsColor)
            return await Show(scenario: scenario, options: options, console: console).run()
        case .files(let directory, let options):
            do {
                return try await FilesCommand(directory: directory, options: options).run()
            } catch {
                return refuse(error)
            }
        case .interactive(let options):
            do {
                return try await InteractiveSession.run(options)
            } catch {
                return refuse(error)
            }
        }
    }

    private static func refuse(_ error: UsageError) -> ExitStatus {
        Console.complain("OperationDemo: \(error.message)")
        Console.complain(Usage.line)
        return .usage
    }
}
