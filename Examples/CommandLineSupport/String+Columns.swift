extension String {
    /// The text followed by spaces, `width` characters wide or as long as it is.
    package func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }

    /// The text preceded by spaces, `width` characters wide or as long as it is.
    package func indented(to width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }

    /// The text without the spaces at its end.
    package var withoutTrailingSpaces: String {
        String(reversed().drop(while: { $0 == " " }).reversed())
    }
}
