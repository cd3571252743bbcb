import CommandLineSupport

/// Colors, where the output wants them. Without, text stays as it is: not one escape code is written.
struct Style: Sendable {
    let isColored: Bool

    static let plain = Style(isColored: false)

    /// The color of an operation: one each, as far as they go round.
    func paint(_ text: String, for subject: Subject) -> String {
        let palette = [36, 33, 35, 32, 34, 96, 93, 95, 92, 94]
        return sequence(palette[subject.number % palette.count], text)
    }

    func accent(_ text: String) -> String { sequence(36, text) }
    func bold(_ text: String) -> String { sequence(1, text) }
    func dim(_ text: String) -> String { sequence(2, text) }
    func warning(_ text: String) -> String { sequence(31, text) }

    private func sequence(_ code: Int, _ text: String) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

/// The line that an event is printed as: milliseconds, operation, stage, detail, two or more spaces in between.
struct EventLine: Sendable {
    let style: Style

    func text(for event: Event) -> String {
        let time = String(event.time.milliseconds).indented(to: 6) + " ms"
        let name = style.paint(event.subject.name.padded(to: 12), for: event.subject)
        // Nothing is padded that nothing follows: no line ends in spaces.
        guard let detail = event.detail else { return "\(time)  \(name)  \(event.stage.rawValue)" }
        let isLie = event.stage == .completion || detail.hasPrefix("completion came")
        return "\(time)  \(name)  \(event.stage.rawValue.padded(to: 16))  "
            + (isLie ? style.warning(detail) : style.dim(detail))
    }
}
