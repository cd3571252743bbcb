import Foundation
import OperationKit

/// A macro of three steps. The last one runs after the upload, but takes the output of the first.
enum ChainScenario {
    static func play(on bench: Bench) -> Section.Findings {
        let notes = ProgressNotes(recording: bench.recording)
        let choose = bench.step("choose", 0.2, didProgress: notes.show) { (album: String) in "\(album)/beach.jpg" }
        let upload = bench.step("upload", 0.8, didProgress: notes.show) { (file: String) in
            "https://photos.example.org/\(file.count)"
        }
        let cleanUp = bench.step("clean-up", 0.2, didProgress: notes.show) { (file: String) in "\(file) removed" }
        let macro = MacroOperation(choose)
            .then(upload, progressWeight: 4)
            .then(cleanUp, inputFrom: choose)
        macro.name = "publish"
        macro.input = "summer"
        notes.follow(macro)
        bench.enqueue(macro)
        return { bench.recording.values }
    }
}

extension Recording {
    /// What operations were given and have made, in one sentence for each.
    var values: [String] {
        var sentences: [(name: String, text: String)] = []
        for note in notes where note.text.hasPrefix("gets ") || note.text.hasPrefix("makes ") {
            if let place = sentences.firstIndex(where: { $0.name == note.name }) {
                sentences[place].text += " and " + note.text
            } else {
                sentences.append((note.name, note.text))
            }
        }
        return sentences.map { "\($0.name) \($0.text)." }
    }
}
