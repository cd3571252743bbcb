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
