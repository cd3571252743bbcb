/// What a key asks for.
enum Key: Equatable, Sendable {
    case add(Kind)
    case toggleSuspension
    case toggleMode
    case choosePrevious
    case chooseNext
    case cancelChosen
    case cancelAll
    case clear
    case help
    case quit

    enum Kind: String, Sendable {
        case sync, naive, async, compound, failing
    }

    static let legend = [
        "s  add a synchronous operation", "n  add a naive asynchronous one", "a  add a correct asynchronous one",
        "c  add a compound of three", "f  add one that fails", "space  stop or start the queue",
        "m  switch between serial and concurrent", "↑ ↓ or k j  choose an operation", "x  cancel the chosen one (▸)",
        "X  cancel all", "l  forget those that have finished", "q  quit", "?  fewer words",
    ]

    /// The keys in few words, for the bottom line.
    static let reminder = [
        "snacf add", "↑↓ choose", "x X cancel", "space stop", "m mode", "l clear", "? keys", "q quit",
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
        case "k": self = .choosePrevious
        case "j": self = .chooseNext
        case "x": self = .cancelChosen
        case "X": self = .cancelAll
        case "l": self = .clear
        case "?", "h": self = .help
        // Control-D, too: it ends what reads from a terminal.
        case "q", "\u{04}": self = .quit
        default: return nil
        }
    }

    /// The keys in what a terminal sent. Of cursor and function keys, which come as escape sequences, only up and down mean
    /// something here, and none of their letters is taken for a key.
    static func keys(in bytes: [UInt8]) -> [Key] {
        var keys: [Key] = []
        var remaining = bytes[...]
        while let byte = remaining.popFirst() {
            if byte != 0x1B {
                if let key = Key(byte: byte) { keys.append(key) }
                continue
            }
            guard let introducer = remaining.popFirst() else { break }
            var final: UInt8?
            if introducer == UInt8(ascii: "O") {
                final = remaining.popFirst()
            } else if introducer == UInt8(ascii: "[") {
                // Parameters, then the one byte that ends the sequence.
                repeat { final = remaining.popFirst() } while final.map { !(0x40...0x7E).contains($0) } ?? false
            }
            if final == UInt8(ascii: "A") { keys.append(.choosePrevious) }
            if final == UInt8(ascii: "B") { keys.append(.chooseNext) }
        }
        return keys
    }
}
