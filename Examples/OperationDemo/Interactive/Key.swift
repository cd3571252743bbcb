/// What a key asks for.
enum Key: Equatable, Sendable {
    case add(Kind)
    case toggleSuspension
    case toggleMode
    case cancelCurrent
    case cancelAll
    case timeline
    case clear
    case help
    case quit

    enum Kind: String, Sendable {
        case sync, naive, async, compound, failing
    }

    static let legend = [
        "s  add a synchronous operation        space  stop or start the queue",
        "n  add a naive asynchronous one       m      switch between serial and concurrent",
        "a  add a correct asynchronous one     x      cancel the current operation",
        "c  add a compound of three            X      cancel all",
        "f  add one that fails                 t      draw the timeline",
        "l  clear                              q      quit      ?  this help",
    ]

    private init?(byte: UInt8) {
        switch Character(UnicodeScalar(byte)) {
        case "s": self = .add(.sync)
        case "n": self = .add(.naive)
        case "a": self = .add(.async)
        case "c": self = .add(.compound)
        case "f": self = .add(.failing)
        case " ": self = .toggleSuspension
        case "m": self = .toggleMode
        case "x": self = .cancelCurrent
        case "X": self = .cancelAll
        case "t": self = .timeline
        case "l": self = .clear
        case "?", "h": self = .help
        // Control-D, too: it ends what reads from a terminal.
        case "q", "\u{04}": self = .quit
        default: return nil
        }
    }

    /// The keys in what a terminal sent. Cursor and function keys, which come as escape sequences, mean nothing here, and none
    /// of their letters is taken for a key.
    static func keys(in bytes: [UInt8]) -> [Key] {
        var keys: [Key] = []
        var remaining = bytes[...]
        while let byte = remaining.popFirst() {
            if byte != 0x1B {
                if let key = Key(byte: byte) { keys.append(key) }
                continue
            }
            guard let introducer = remaining.popFirst() else { break }
            if introducer == UInt8(ascii: "O") {
                _ = remaining.popFirst()
            } else if introducer == UInt8(ascii: "[") {
                // Parameters, then the one byte that ends the sequence.
                while let parameter = remaining.popFirst(), !(0x40...0x7E).contains(parameter) {}
            }
        }
        return keys
    }
}
