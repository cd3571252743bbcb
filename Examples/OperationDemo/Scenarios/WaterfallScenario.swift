import Foundation
import OperationKit

/// From a path to a model, job by job. The second time the response cannot be parsed, and no model is made.
enum WaterfallScenario {
    static func play(on bench: Bench) async -> Section.Findings {
        for (name, path) in [("good", "users/1"), ("bad", "users/none")] {
            let waterfall = Waterfall<String, String>(name: name)
                .thenRun { path in
                    bench.step("\(name)-req", 0.1) { "GET \($0)" }.with(input: path)
                }
                .thenRun(progressWeight: 2) { request in
                    bench.step("\(name)-resp", 0.2) { (request: String) in request.hasSuffix("1") ? "name=Ada" : "404" }
                        .with(input: request)
                }
                .thenRun { response in
                    bench.step("\(name)-parse", 0.1) { try parse($0) }.with(input: response)
                }
                .then { user in "model of \(user)" }
            waterfall.input = path
            waterfall.completion = { result in
                switch result {
                case .success(let model): bench.recording.note(name, "ends with the \(model).")
                case .failure(let error):
                    bench.recording.note(name, "ends without a model: \(error.localizedDescription)")
                }
            }
            bench.enqueue(waterfall)
            await bench.finishAll()
        }
        return { bench.recording.notes.filter { $0.text.hasPrefix("ends with") }.map { "\($0.name) \($0.text)" } }
    }

    private static func parse(_ response: String) throws -> String {
        let parts = response.split(separator: "=")
        guard parts.count == 2 else { throw ParsingError(text: response) }
        return String(parts[1])
    }
}

private struct ParsingError: LocalizedError, CustomStringConvertible {
    let text: String
    var description: String { "“\(text)” is no user." }
    var errorDescription: String? { description }
}
