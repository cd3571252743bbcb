import Foundation

extension Operation {
    /// The name of the operation in messages: its own, or its type. Where the library has made the operation, what it
    /// was made from takes the place of the type.
    package var displayName: String {
        ownName ?? titleInMessages
    }

    /// The name of a child in messages: its own, or its type and index.
    func displayName(at index: Int) -> String {
        ownName ?? "\(titleInMessages) \(index)"
    }

    /// The name that the operation was given, if it says something.
    var ownName: String? {
        guard let name, !name.isEmpty else { return nil }
        return name
    }

    /// What the operation is called in messages if it has no name.
    package var titleInMessages: String {
        guard let operation = self as? AsyncOperation else { return typeName(of: type(of: self)) }
        return operation.ownTitle ?? type(of: operation).typeTitle
    }
}

extension OperationQueue {
    /// The name of the queue in messages: its own, or its type.
    var displayName: String {
        ownName ?? "OperationQueue"
    }

    /// The name that the queue was given. Those that Foundation gives are addresses.
    var ownName: String? {
        guard let name, !name.isEmpty, !name.hasPrefix("NSOperationQueue ") else { return nil }
        return name
    }
}

/// What types are called in messages. Writing that down takes as long as the whole life of an operation, so it is done once for
/// each type.
private let typeNames = Locked<[ObjectIdentifier: String]>([:])

/// The name of a type, as `String(describing:)` writes it.
func typeName(of type: Any.Type) -> String {
    typeNames.withLock { names in
        if let name = names[ObjectIdentifier(type)] { return name }
        // No code of a user's is called for a type.
        let name = String(describing: type)
        names[ObjectIdentifier(type)] = name
        return name
    }
}

extension String {
    /// The text for a message, with its line breaks and other control characters escaped.
    package var onOneLine: String {
        unicodeScalars.lazy.map { $0.isControl ? $0.escaped(asASCII: true) : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether it breaks a line, or may do something to a terminal.
    package var isControl: Bool {
        [.control, .lineSeparator, .paragraphSeparator].contains(properties.generalCategory)
    }
}
