import OperationKitTestSupport

@Suite("Example: Builder", .hangGuard)
struct BuilderTests {
    private let folder = TemporaryFolder()

    private func build(_ text: String, _ options: String...) async throws -> (status: Int32, output: String) {
        try await Example.run("Builder", options + [try folder.file("Buildfile", text)])
    }

    @Test("Targets are built after what they need")
    func order() async throws {
        let result = try await build(
            """
            # a comment
            app: first second
                # inside a script
                echo linked # behind a command
            first:
                echo one
            # at the margin
                if true; then
                    echo two
                fi
            second: first
                true

            """)
        #expect(result.status == 0)
        #expect(
            result.output.split(separator: "\n") == [
                "first: one", "first: two", "built first", "built second", "app: linked", "built app",
            ])
    }

    @Test("A target that fails stops the others, or only those that need it")
    func failure() async throws {
        let text = """
            bad:
                echo broken >&2; exit 3
            app: bad
                echo never
            other: good
                echo later
            good:
                sleep 0.1
            """
        let stopped = try await build(text)
        #expect(stopped.status == 1)
        #expect(stopped.output.contains("exited with status 3: broken"))
        #expect(!stopped.output.contains("never") && !stopped.output.contains("later"))
        let kept = try await build(text, "--keep-going")
        #expect(kept.status == 1)
        #expect(kept.output.contains("built other") && !kept.output.contains("never"))
        #expect(kept.output.contains("1 of 4 operations failed"))
        #expect(kept.output.contains("1 other did not run because of it"))
    }

    @Test("Targets that need each other are reported")
    func cycle() async throws {
        let result = try await build("a: b\n  true\nb: a\n  true\n")
        #expect(result.status == 1)
        #expect(result.output.contains("cycle"))
    }

    @Test("A target that needs itself is an error, and nothing is built")
    func itself() async throws {
        let result = try await build("first:\n  echo never\na: first a\n  echo never\n")
        #expect(result.status == 64 && result.output == "“a” needs itself.\n")
    }

    @Test("A target that nothing builds is an error, and nothing is built")
    func unknown() async throws {
        let result = try await build("app: first missing\n  echo never\nfirst:\n  echo never\n")
        #expect(result.status == 64 && result.output == "Nothing builds “missing”.\n")
    }

    @Test("Control-C ends what runs")
    func interrupted() async throws {
        let process = try Example(
            "Builder", [try folder.file("Buildfile", "slow:\n  echo begun\n  sleep 100\nnext: slow\n  echo never\n")])
        await process.hasWritten("slow: begun")
        await process.interrupt()
        let result = try await process.result()
        #expect(result.status == 130)
        #expect(!result.output.contains("never"))
    }

    @Test("A second Control-C ends it, whatever runs")
    func interruptedTwice() async throws {
        // What is left behind ends by itself soon.
        let script = "trap 'kill -INT $PPID; exec sleep 1' TERM\n  sh -c 'echo begun; exec sleep 100'"
        let process = try Example("Builder", [try folder.file("Buildfile", "deaf:\n  \(script)\nnext: deaf\n")])
        await process.hasWritten("deaf: begun")
        await process.interrupt()
        let result = try await process.result()
        // It has not come to say so.
        #expect(result.status == 130 && !result.output.contains("was cancelled"))
    }

    @Test("Help and a missing file")
    func usage() async throws {
        let help = try await Example.run("Builder", ["--help"])
        #expect(help.status == 0 && help.output.hasPrefix("Usage: Builder"))
        let missing = try await Example.run("Builder", ["/missing"])
        #expect(missing.status == 64 && missing.output.hasPrefix("There is no file “/missing” to read."))
    }
}
