import Foundation
import OperationKit

/// A macro of three steps. The last one runs after the upload, but takes the output of the first.
enum ChainScenario {
    static func play(on bench: Bench) async {
        let whole = bench.whole("publish")
        let choose = bench.step("choose", 0.2, of: whole, isFirst: true) { (album: String) in "\(album)/beach.jpg" }
        let upload = bench.step("upload", 0.8, of: whole) { (file: String) in "https://photos.example.org/\(file.count)"
        }
        let cleanUp = bench.step("clean-up", 0.2, of: whole) { (file: String) in "\(file) removed" }
        let macro = MacroOperation(choose)
            .then(upload, progressWeight: 4)
            .then(cleanUp, inputFrom: choose)
        macro.name = "publish"
        macro.input = "summer"
        whole.follow(macro)
        bench.queue.addOperation(macro)
        await bench.log.reached(.completion, of: whole.report.subject)
    }
}
