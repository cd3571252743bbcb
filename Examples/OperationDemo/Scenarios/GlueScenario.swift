import Dispatch
import Foundation
import OperationKit

/// Two classes that know nothing of each other. A binding hands over what the one has found to the other.
enum GlueScenario {
    static func play(on bench: Bench) -> Section.Findings {
        let fetch = Fetch("fetch", 0.3, bench)
        let process = Greet("process", 0.2, bench)
        process.bind(\.users, to: fetch, \.users)
        bench.enqueue(process, fetch)
        return { ["process was given the users that fetch found: \(process.users.joined(separator: " and "))."] }
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
private class Glued: AsyncOperation, @unchecked Sendable {
    private let seconds: Double
    private let bench: Bench

    init(_ name: String, _ seconds: Double, _ bench: Bench) {
        self.seconds = seconds
        self.bench = bench
        super.init()
        self.name = name
    }

    func work(_ beginning: String, _ end: @escaping @Sendable () -> String) {
        let name = name ?? ""
        bench.recording.note(name, beginning)
        bench.after(seconds) { [self] in
            bench.recording.note(name, end())
            finish()
        }
    }
}
