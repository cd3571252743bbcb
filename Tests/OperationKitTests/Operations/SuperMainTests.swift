#if DEBUG && (os(macOS) || os(Linux))
import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// A subclass that calls `super.main()` and finishes later is found. What is reported of a class belongs to the process, so
/// each of these has one of its own.
@Suite("super.main() by mistake", .hangGuard) struct SuperMainTests {
    /// The mistake.
    final class Upload: AsyncOperation, @unchecked Sendable {
        override func main() {
            super.main()
        }
    }

    /// The same with an input.
    final class Resize: IOOperation<Int, Void>, @unchecked Sendable {
        override func main(input: Int) {
            super.main(input: input)
        }
    }

    /// Receives the reports of the process from now on.
    private static func reports() -> Shared<[String]> {
        unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "starts", 1)
        let reports = Shared<[String]>([])
        OperationDiagnostics.handler = { report in
            guard case .finishedAfterSuperMain(let type) = report else { return }
            reports.change { $0.append("\(type): \(report)") }
        }
        return reports
    }

    @Test("A `finish` after `super.main()` is reported, once for each class") func finishAfterSuperMain() async {
        await #expect(processExitsWith: .success) {
            let reports = SuperMainTests.reports()
            for _ in 0..<3 {
                let upload = Upload()
                upload.start()
                precondition(upload.isFinished)
                MisuseReporter.shared.waitForReports()
                await onThread { precondition(!upload.finish()) }
            }
            let resize = Resize()
            resize.input = 1
            // When `main()` has returned, and not only when the operation has finished.
            await onThread { resize.start() }
            precondition(!resize.finish(withError: TestError.first))
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.count == 2, "\(reports.value)")
            precondition(reports.value[0].hasPrefix("Upload: OperationKit: "), reports.value[0])
            precondition(reports.value[0].contains("super.main()"))
            precondition(reports.value[1].hasPrefix("Resize: OperationKit: "), reports.value[1])
            precondition(reports.value[1].contains("super.main(input:)"))
        }
    }

    @Test("Operations that are finished twice otherwise are not reported") func otherSecondFinishes() async {
        await #expect(processExitsWith: .success) {
            let reports = SuperMainTests.reports()
            let plain = AsyncOperation()
            let overriding = ScriptedOperation { $0.finish() }
            for operation in [plain, overriding] {
                operation.start()
                precondition(operation.isFinished)
                precondition(!operation.finish())
            }
            let outside = Upload()
            outside.finish()
            outside.start()
            outside.finish()
            MisuseReporter.shared.waitForReports()
            precondition(reports.value.isEmpty, "\(reports.value)")
        }
    }

    @Test("The report is printed to standard error") func printed() async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let upload = Upload()
            upload.start()
            upload.finish()
            MisuseReporter.shared.waitForReports()
        }
        let printed = String(decoding: result.standardErrorContent, as: UTF8.self)
        let sentence = "no effect on an operation of the class “Upload”, because super.main had finished it before."
        #expect(printed.contains(sentence))
    }

    @Test("Nothing is reported where nothing is recorded") func off() async throws {
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            unsafe setenv("OPERATIONKIT_DIAGNOSTICS", "off", 1)
            let upload = Upload()
            upload.start()
            upload.finish()
            MisuseReporter.shared.waitForReports()
        }
        #expect(!String(decoding: result.standardErrorContent, as: UTF8.self).contains("Upload"))
    }
}
#endif
