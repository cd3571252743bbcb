import OperationKit

/// The colors and shapes of the SVG drawing.
enum TimelineSVGStyle {
    /// The style sheet, with a light and a dark set of colors. Names of classes are those of ``name(of:)`` and of the
    /// drawing.
    static let sheet = """
        <style>
        svg {
          --back: #ffffff; --ink: #1f2328; --faint: #6e7781; --grid: #d8dee4;
          --executing: #2f81f7; --composite: #6e7781; --waiting: #bf8700; --pending: #8c959f; --late: #1b9aa0;
          --failed: #cf222e; --cancelled: #8250df; --critical: #bc4c00;
        }
        @media (prefers-color-scheme: dark) {
          svg {
            --back: #0d1117; --ink: #e6edf3; --faint: #8d96a0; --grid: #30363d;
            --executing: #4493f8; --composite: #8d96a0; --waiting: #bb8009; --pending: #6e7681; --late: #39c5cf;
            --failed: #f85149; --cancelled: #ab7df8; --critical: #f0883e;
          }
        }
        text { font: 12px system-ui, sans-serif; fill: var(--ink); }
        .faint { fill: var(--faint); font-size: 11px; }
        .back { fill: var(--back); }
        .grid { stroke: var(--grid); }
        .executing { fill: var(--executing); } .composite { fill: var(--composite); } .waiting { fill: var(--waiting); }
        .pending { fill: var(--pending); } .late { fill: var(--late); } .failed { fill: var(--failed); }
        .cancelled { fill: var(--cancelled); } .unfinished { fill: var(--ink); }
        .retry { fill: var(--failed); stroke: var(--back); }
        .critical { fill: none; stroke: var(--critical); stroke-width: 2; }
        .path { fill: none; stroke: var(--critical); stroke-width: 1.5; }
        </style>
        """

    /// The class of the bars of a kind.
    static func name(of kind: TimelineSegment.Kind) -> String {
        switch kind {
        case .pending: "pending"
        case .waiting: "waiting"
        case .executing: "executing"
        case .composite: "composite"
        case .late: "late"
        }
    }

    /// Where the bars of a kind begin in a row, and how high they are, in pixels.
    static func extent(of kind: TimelineSegment.Kind) -> (top: Int, height: Int) {
        switch kind {
        case .pending: (9, 2)
        case .waiting: (6, 8)
        case .executing: (4, 12)
        case .composite: (7, 6)
        case .late: (6, 8)
        }
    }
}
