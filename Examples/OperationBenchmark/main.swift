import Foundation

let status = Benchmark.run(Array(CommandLine.arguments.dropFirst()))
exit(status.rawValue)
