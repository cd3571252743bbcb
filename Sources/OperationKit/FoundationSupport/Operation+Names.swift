import Foundation

extension Operation {
    /// How messages call the operation: its name, or its type.
    var displayName: String {
        name ?? String(describing: type(of: self))
    }

    /// How messages call a child: its name, or its type and index.
    func displayName(at index: Int) -> String {
        name ?? "\(type(of: self)) \(index)"
    }
}
