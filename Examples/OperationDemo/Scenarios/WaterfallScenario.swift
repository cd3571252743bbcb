import Foundation
import OperationKit

/// From a path to a model, job by job. The second time the response cannot be parsed, and no model is made.
enum WaterfallScenario {
    static func play(on bench: Bench) async {
        for (name, path) in [("good", "users/1"), ("bad", "users/none")] {
            let whole = bench.whole(name)
            let waterfall = Waterfall<String, String>(name: name)
                .thenRun { path in
                    bench.step("\(name)-req", 0.1, of: whole, isFirst: true) { "GET \($0)" }.with(input: path)
                }
                .thenRun(progressWeight: 2) { request in
                    bench.step("\(name)-resp", 0.2, of: whole) { (request: String) in
                        request.hasSuffix("1") ? "name=Ada" : "404"
                    }
                    .with(input: request)
                }
                .thenRun { response in
                    bench.step("\(name)-parse", 0.1, of: whole) { try parse($0) }.with(input: response)
                }
                .then { user in "model of \(user)" }
            waterfall.input = path
            whole.follow(waterfall)
            waterfall.completion = { result in
                if case .success(let model) = result { whole.report(.progress, "the result is \(model)") }
            }
            bench.queue.addOperation(waterfall)
            await bench.log.reached(.completion, of: whole.report.subject)
        }
    }

    private static func parse(_ response: String) throws -> String {
        let parts = response.split(separator: "=")
        guard parts.count == 2 else { throw ParsingError(text: response) }
        return String(parts[1])
    }
}

private struct ParsingError: LocalizedError {
    let text: String
    var errorDescription: String? { "“\(text)” is no user." }
}
