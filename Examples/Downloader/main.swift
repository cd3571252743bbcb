import Foundation
import OperationKit
import OperationKitNetwork

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
let help = """
    Usage: Downloader [--to FOLDER] [URL | FILE]…

    Downloads each URL, and those in each FILE, eight at a time, four from each host. What has broken off is resumed.
      --to FOLDER  where the files go, instead of the current folder
    """
func end(_ message: String, _ status: Int32) -> Never {
    print(message)
    exit(status)
}

var arguments = Array(CommandLine.arguments.dropFirst())
var folder = "."
if let index = arguments.firstIndex(of: "--to"), index + 1 < arguments.count {
    folder = arguments[index + 1]
    arguments.removeSubrange(index...index + 1)
}
if arguments.isEmpty || arguments.contains("--help") { end(help, arguments.isEmpty ? 64 : 0) }
let texts = arguments.map { $0.contains("://") ? $0 : (try? String(contentsOfFile: $0, encoding: .utf8)) ?? "" }
let words = texts.map { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
if let index = words.firstIndex(of: []) { end("There is nothing to read in “\(arguments[index])”.\n\n\(help)", 64) }
if let word = words.joined().first(where: { URL(string: $0) == nil }) { end("“\(word)” is no URL.\n\n\(help)", 64) }
let urls = words.joined().compactMap { URL(string: $0) }

let hosts = KeyedConcurrencyLimit("host", 4)
let all = CompoundOperation(name: "downloads", maxConcurrentOperationCount: 8)
for url in urls {
    let name = "\(url.host ?? "")\(url.path)".replacingOccurrences(of: "/", with: "_")
    let file = URL(fileURLWithPath: folder).appendingPathComponent(name)
    let download = RetryOperation(.http, name: url.absoluteString) { _ in DownloadTaskOperation(to: file) }
    download.require(hosts[url.host])
    try all.addOperation(download.with(input: URLRequest(url: url)))
}

signal(SIGINT, SIG_IGN)
let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
interrupt.setEventHandler { all.cancel() }
interrupt.activate()
func drawBar() {
    let count = Int(all.progress.fractionCompleted * 40)
    let bar = String(repeating: "#", count: count) + String(repeating: ".", count: 40 - count)
    try? FileHandle.standardOutput.write(contentsOf: Data("\r[\(bar)]".utf8))
}
let bar = Task { while (try? await Task.sleep(for: .milliseconds(100))) != nil { drawBar() } }
var outcome: (status: Int32, message: String) = (0, "\(urls.count) files are here.")
do {
    try await OperationQueue().run(all)
} catch {
    outcome = (all.isCancelled ? 130 : 1, error.localizedDescription)
}
bar.cancel()
drawBar()
end("\n\(outcome.message)", outcome.status)
