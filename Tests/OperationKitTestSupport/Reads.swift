/// A sequence whose items come from a closure, which is called for each with its index.
package struct Reads: Sequence, IteratorProtocol, Sendable {
    private let read: @Sendable (_ index: Int) -> Int?
    private var index = 0

    package init(_ read: @escaping @Sendable (_ index: Int) -> Int?) {
        self.read = read
    }

    package mutating func next() -> Int? {
        defer { index += 1 }
        return read(index)
    }
}
