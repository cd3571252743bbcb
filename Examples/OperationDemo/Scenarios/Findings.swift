/// What the events of a section show, in sentences: who claimed to be complete too early.
struct Findings {
    let sentences: [String]

    init(_ events: [Event]) {
        var completions: [Subject: Duration] = [:]
        var early: [(name: String, milliseconds: Int)] = []
        for event in events {
            if event.stage == .completion { completions[event.subject] = event.time }
            if event.stage.endsWork, let completion = completions[event.subject] {
                let difference = event.time.milliseconds - completion.milliseconds
                early.append((event.subject.name, difference))
            }
        }
        sentences = early.map { name, milliseconds in
            "\(name): completion came \(milliseconds) ms before its work finished."
        }
    }
}
