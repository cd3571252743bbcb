import OperationKitTestSupport

/// What all programs do alike.
@Suite("Examples: use", .hangGuard, .stopsServers)
struct UsageTests {
    private func expectMistake(
        _ program: String, _ arguments: [String], _ sentence: String, status: Int32, lines count: Int
    ) async throws {
        let result = try await ProductProcess(program, arguments).result()
        #expect(result.status == status && result.output == "")
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count == count && lines[0].hasPrefix("\(program): ") && lines[0].contains(sentence))
        #expect(lines[1].hasPrefix("usage: \(program) "))
    }

    @Test(
        "A mistake is answered by the demo with a sentence, the usage and status 64",
        arguments: [
            (
                ["nonsense"],
                "expected one of tour, sync, naive, async, compound, cancel, errors, chain, waterfall, glue, policies, collection, critical-path, files"
            ),
            (["--bogus"], "Unknown option “--bogus”: expected --mode"),
            (["-x"], "Unknown option “-x”"),
            (["tour", "sync"], "“sync” is too much"),
            (["files"], "expected a directory"),
            (["files", "a", "b"], "“b” is too much"),
            (["files", "no/such/directory"], "expected a directory that exists"),
            (["files", ".", "--mode", "both"], "expected --mode serial or --mode concurrent"),
            (["--mode"], "--mode is missing its value: expected serial, concurrent or both"),
            (["--mode", "parallel"], "“parallel” is no value for --mode: expected serial, concurrent or both"),
            (["--width", "0"], "expected a whole number from 1 to 256"),
            (["--width=2.5"], "expected a whole number from 1 to 256"),
            (["--width", "99999999999999999999"], "expected a whole number from 1 to 256"),
            (["--speed", "0"], "expected a number from 0.01 to 1000"),
            (["--speed", "-1"], "expected a number from 0.01 to 1000"),
            (["--speed", "nan"], "expected a number from 0.01 to 1000"),
            (["--speed", "inf"], "expected a number from 0.01 to 1000"),
            (["--speed", ""], "expected a number from 0.01 to 1000"),
            (["--list=all"], "--list takes no value"),
            (["--interactive", "tour"], "expected no scenario with --interactive"),
            (["--interactive", "--mode", "both"], "expected --mode serial or --mode concurrent"),
            (["--interactive"], "expects a terminal"),
            (["--svg"], "--svg is missing its value: expected a file to write"),
            (["--trace="], "expected a file to write"),
            (["--svg", "a", "--trace", "a"], "expected different files"),
            (["--mermaid=x"], "--mermaid takes no value"),
            (["--mermaid", "--log"], "expected no --log"),
            (["files", ".", "--log"], "expected no --log"),
            (["--interactive", "--svg", "a"], "expected no --svg, --trace, --mermaid or --log"),
            (["--", "--help"], "Unknown scenario “--help”"),
        ])
    func mistakesInDemo(arguments: [String], sentence: String) async throws {
        try await expectMistake("OperationDemo", arguments, sentence, status: 64, lines: 5)
    }

    @Test(
        "A mistake is answered by the benchmark with a sentence, the usage and status 2, and nothing is measured",
        arguments: [
            (["flat"], "“flat” is too much: expected options only"),
            (["--bogus"], "Unknown option “--bogus”: expected --only"),
            (["--only"], "--only is missing its value: expected one of queue, flat, chain"),
            (["--only", "heap"], "Unknown case “heap”: expected one of queue, flat, chain"),
            (["--count"], "--count is missing its value: expected a whole number from 1 to 1000000"),
            (["--count", "0"], "“0” is no value for --count: expected a whole number from 1"),
            (["--count=1e3"], "“1e3” is no value for --count"),
            (["--count", "99999999999999999999"], "is no value for --count"),
            (["--rounds", "4"], "“4” is no value for --rounds: expected a whole number from 5"),
            (["--json"], "--json is missing its value: expected a file"),
            (["--json="], "expected a file to write to"),
            (["--json", "/no/such/directory/report.json"], "“/no/such/directory/report.json” cannot be written"),
            (["--json", "/"], "“/” cannot be written"),
            (["--compare"], "--compare is missing its value: expected a file that --json wrote"),
            (["--compare", "/no/such/report.json"], "“/no/such/report.json” cannot be read"),
            (["--check=yes"], "--check takes no value"),
            (["--memory-probe", "x"], "expected one of compound, children"),
            (["--only", "life"], "Unknown case “life”: expected one of queue, flat, chain"),
            (["--instructions=yes"], "--instructions takes no value"),
            (["--instructions", "--only"], "or, with --instructions, of plain, creation"),
            (["--instructions", "--only", "flat"], "Unknown case “flat” for --instructions: expected one of plain"),
            (["--only", "flat", "--instructions"], "Unknown case “flat” for --instructions: expected one of plain"),
            (["--instructions", "--rounds", "4"], "“4” is no value for --rounds: expected a whole number from 5"),
            (["--instruction-probe", "flat"], "“flat” is no value for --instruction-probe: expected one of plain"),
        ])
    func mistakesInBenchmark(arguments: [String], sentence: String) async throws {
        try await expectMistake("OperationBenchmark", arguments, sentence, status: 2, lines: 2)
    }

    @Test("Control-C ends a program that waits", arguments: [("Downloader", "are here"), ("Sync", "in sync")])
    func interrupted(program: String, success: String) async throws {
        let (begun, never) = (Gate(), Gate())
        let server = try LoopbackServer { _ in
            begun.open()
            return [.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .wait(never)]
        }
        let process = try ProductProcess(program, [server.url("").absoluteString])
        await begun.opened()
        await process.interrupt()
        let result = try await process.result()
        #expect(result.status == 130 && !result.output.contains(success))
    }

    @Test(
        "A program says how it is used, if it is asked to, and what is wrong with its arguments",
        arguments: [
            ("Builder", ["--help"], 0, "Usage: Builder"), ("Downloader", ["--help"], 0, "Usage: Downloader"),
            ("Pipeline", ["--help"], 0, "Usage: Pipeline"), ("Sync", ["--help"], 0, "Usage: Sync"),
            ("Builder", ["/missing"], 64, "There is no file “/missing” to read."),
            ("Downloader", [], 64, "Usage: Downloader"),
            ("Downloader", ["/missing"], 64, "There is nothing to read in “/missing”."),
            ("Downloader", ["http://[bad"], 64, "“http://[bad” is no URL."),
            ("Downloader", ["http://127.0.0.1:bad/x"], 64, "“http://127.0.0.1:bad/x” is no URL."),
            ("Pipeline", [], 64, "Usage: Pipeline"), ("Sync", ["nonsense"], 64, "Usage: Sync"),
        ])
    func usage(program: String, arguments: [String], status: Int32, beginning: String) async throws {
        let result = try await ProductProcess(program, arguments).result()
        #expect(result.status == status && result.output.hasPrefix(beginning))
    }
}
