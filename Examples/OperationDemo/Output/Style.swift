/// Colors, where the output wants them. Without, text stays as it is: not one escape code is written.
struct Style: Sendable {
    let isColored: Bool

    static let plain = Style(isColored: false)

    func accent(_ text: String) -> String { sequence(36, text) }
    func bold(_ text: String) -> String { sequence(1, text) }
    func dim(_ text: String) -> String { sequence(2, text) }
    func inverse(_ text: String) -> String { sequence(7, text) }

    private func sequence(_ code: Int, _ text: String) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}
