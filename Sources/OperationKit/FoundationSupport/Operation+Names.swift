import Foundation

extension Operation {
    /// The name of the operation in messages: its own, or its type.
    var displayName: String {
        name ?? String(describing: type(of: self))
    }

    /// The name of a child in messages: its own, or its type and index.
    func displayName(at index: Int) -> String {
        name ?? "\(type(of: self)) \(index)"
    }
}
