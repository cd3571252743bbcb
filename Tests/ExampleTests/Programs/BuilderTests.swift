import OperationKitTestSupport

@Suite("Example: Builder", .hangGuard)
struct BuilderTests {
    private let folder = TemporaryFolder()

    private func start(_ text: String, _ options: String...) throws -> ProductProcess {
        try ProductProcess("Builder", options + [try folder.file("Buildfile", text)])
    }

    @Test("Targets are built after what they need")
    func order() async throws {
        let result = try await start(
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

            """
        ).result()
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
                sleep 0.5
            """
        let stopped = try await start(text).result()
        #expect(stopped.status == 1)
        #expect(stopped.output.contains("exited with status 3: broken"))
        #expect(!stopped.output.contains("never") && !stopped.output.contains("later"))
        let kept = try await start(text, "--keep-going").result()
        #expect(kept.status == 1)
        #expect(kept.output.contains("built other") && !kept.output.contains("never"))
        #expect(kept.output.contains("1 of 4 operations failed"))
        #expect(kept.output.contains("1 other did not run because of it"))
    }

    @Test(
        "Nothing is built where a target needs itself, directly or through another, or what nothing builds",
        arguments: [
            ("a: b\n  echo never\nb: a\n  echo never\n", 1, "cycle"),
            ("first:\n  echo never\na: first a\n  echo never\n", 64, "“a” needs itself.\n"),
            ("app: first missing\n  echo never\nfirst:\n  echo never\n", 64, "Nothing builds “missing”.\n"),
        ])
    func impossible(text: String, status: Int32, message: String) async throws {
        let result = try await start(text).result()
        #expect(result.status == status && result.output.contains(message) && !result.output.contains("never"))
    }

    @Test(
        "Control-C ends what runs, and a second one the builder, whatever runs",
        arguments: [
            "echo begun; sleep 100",
            // What is left behind ends by itself soon.
            "trap 'kill -INT $PPID; exec sleep 5' TERM\n  sh -c 'echo begun; exec sleep 100'",
        ])
    func interrupted(script: String) async throws {
        let process = try start("slow:\n  \(script)\nnext: slow\n  echo never\n")
        await process.hasWritten("slow: begun")
        await process.interrupt()
        let result = try await process.result()
        #expect(result.status == 130 && !result.output.contains("never"))
        // The second time, it has not come to say so.
        #expect(result.output.contains("was cancelled") == !script.contains("trap"))
    }
}
