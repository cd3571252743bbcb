import Foundation
import OperationKit
import OperationKitNetwork

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
let help = """
    Usage: Sync SERVER
    Logs in to the server with this URL, reads pages until there are no more, and sends back what was read, one item
    after the other, while the profile and the settings are loaded.
    """

guard CommandLine.arguments.count == 2, let server = URL(string: CommandLine.arguments[1]), server.host != nil else {
    print(help)
    exit(CommandLine.arguments.contains("--help") ? 0 : 64)
}

struct Page: Decodable { let items: [String], next: Int? }
var status = "" { didSet { try? FileHandle.standardOutput.write(contentsOf: Data("\(status)\n".utf8)) } }
var token = ""

@MainActor func request(_ path: String, method: String = "GET") -> IOOperation<URLRequest, HTTPOutput> {
    var request = URLRequest(url: server.appendingPathComponent(path))
    request.httpMethod = method
    request.setValue(token, forHTTPHeaderField: "Authorization")
    return RetryOperation(.http, name: path) { _ in DataTaskOperation() }.with(input: request)
}

// The body runs on the main actor, the requests do not.
let account = ExclusiveAccess("account")
let sync = WorkflowOperation(name: "sync", maxConcurrentOperationCount: 4) { @MainActor flow in
    token = try await flow.run(request("login", method: "POST")).text
    var (items, next): ([String], Int?) = ([], 1)
    while let number = next {
        let page = try JSONDecoder().decode(Page.self, from: try await flow.run(request("pages/\(number)")).data)
        (items, next) = (items + page.items, page.next)
        status = "\(items.count) items"
    }
    let (profile, settings) = (request("profile"), request("settings"))
    async let name = flow.run(profile).text
    async let theme = flow.run(settings).text
    let uploads = items.map { request("items/\($0)", method: "PUT") }
    for upload in uploads { upload.require(account) }
    try await flow.run(CompoundOperation(name: "uploads", operations: uploads))
    status = "\(uploads.count) uploads, \(try await name), \(try await theme)"
    try await flow.run(request("notify", method: "POST"))
}

signal(SIGINT, SIG_IGN)
let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
interrupt.setEventHandler { sync.cancel() }
interrupt.activate()
do {
    try await OperationQueue().run(sync)
    status = "in sync"
} catch {
    status = error.localizedDescription
    exit(sync.isCancelled ? 130 : 1)
}
