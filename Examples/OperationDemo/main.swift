import Foundation

let status = await Demo.run(Array(CommandLine.arguments.dropFirst()))
status.exit()
