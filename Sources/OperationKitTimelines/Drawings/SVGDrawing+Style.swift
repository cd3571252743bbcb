import OperationKit

/// The widths of texts, and the colors.
extension SVGDrawing {
    /// How wide a text is at most, in pixels, in the usual fonts of systems.
    static func width(of text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + width(of: $1) }
    }

    /// How wide a character is at most, in pixels. The font is not known, so this is that of the widest usual one.
    static func width(of character: Character) -> Int {
        if character.isASCII { return unusualWidths[character] ?? 8 }
        let cells = character.cells
        if cells < 2 { return cells == 0 ? 0 : character == "…" || character == "—" ? 12 : 9 }
        // Ideographs are as wide as the font is high, pictures are wider.
        return character.unicodeScalars.contains { $0.properties.isEmojiPresentation || $0 == "\u{FE0F}" } ? 16 : 13
    }

    /// The widths of the characters of ASCII that are not as wide as most of them.
    private static let unusualWidths: [Character: Int] = [
        4: "ijlIJ|!.,:;'/ ", 5: "frt-()[]\"`", 9: "ABCDEFGHKLNOPQRSTUVXYZ", 11: "#&+<=>^~", 12: "mwMW@%",
    ].reduce(into: [:]) { widths, group in
        for character in group.value { widths[character] = group.key }
    }

    /// The style sheet, with a light and a dark set of colors.
    static let sheet = """
        <style>
        svg {
          --back: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d8dee4;
          --executing: #2f81f7; --composite: #6e7781; --waiting: #bf8700; --pending: #8c959f;
          --failed: #cf222e; --cancelled: #8250df; --critical: #bc4c00;
        }
        @media (prefers-color-scheme: dark) {
          svg {
            --back: #0d1117; --ink: #e6edf3; --faint: #9198a1; --grid: #30363d;
            --executing: #4493f8; --composite: #8d96a0; --waiting: #bb8009; --pending: #6e7681;
            --failed: #f85149; --cancelled: #ab7df8; --critical: #f0883e;
          }
        }
        text { font: 12px system-ui, sans-serif; fill: var(--ink); }
        .title { font-size: 13px; font-weight: 600; }
        .faint { fill: var(--faint); font-size: 11px; }
        .back { fill: var(--back); }
        .grid { stroke: var(--grid); }
        .executing { fill: var(--executing); } .composite { fill: var(--composite); } .waiting { fill: var(--waiting); }
        .pending, .skipped { fill: var(--pending); } .failed { fill: var(--failed); }
        .cancelled { fill: var(--cancelled); } .unfinished { fill: var(--ink); }
        .retry { fill: var(--failed); stroke: var(--back); }
        .critical { fill: none; stroke: var(--critical); stroke-width: 2; }
        .path { fill: none; stroke: var(--critical); stroke-width: 1.5; }
        </style>
        """
}
