import Dispatch
import Foundation
import OperationKit

/// Two classes that know nothing of each other. A binding hands over what the one has found to the other.
enum GlueScenario {
    static func play(on bench: Bench) async {
        let fetch = bench.make("fetch", 0.3) { Fetch(report: $0, seconds: $1) }
        let process = bench.make("process", 0.2) { Greet(report: $0, seconds: $1) }
        process.bind(\.users, to: fetch, \.users)
        bench.enqueue(process, fetch)
        await bench.log.reached(.completion, of: process.report.subject)
    }

    private final class Fetch: Glued, @unchecked Sendable {
        private(set) var users: [String] = []

        override func main() {
            work("looks for users") {
                self.users = ["Ada", "Grace"]
                return "found \(self.users.joined(separator: " and "))"
            }
        }
    }

    private final class Greet: Glued, @unchecked Sendable {
        var users: [String] = []

        override func main() {
            work("gets \(users.joined(separator: " and "))") { "greeted \(counted(self.users.count, "user"))" }
        }
    }
}

/// An asynchronous operation without typed input or output, as applications have them.
private class Glued: AsyncOperation, ReportingOperation, @unchecked Sendable {
    let report: Reporter
    private let seconds: Double

    init(report: Reporter, seconds: Double) {
        self.report = report
        self.seconds = seconds
        super.init()
        name = report.subject.name
        asyncCompletionBlock = { error in report(.asyncCompletion, error.map(sentence)) }
        report.followCompletion(of: self)
    }

    func work(_ beginning: String, _ end: @escaping @Sendable () -> String) {
        report(.started, beginning)
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
            self.report(.workFinished, end())
            self.finish()
        }
    }
}
