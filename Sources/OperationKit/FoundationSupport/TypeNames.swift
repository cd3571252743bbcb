/// What types are called in messages. Writing that down takes as long as the whole life of an operation, so it is done once for
/// each type.
enum TypeNames {
    private static let known = Locked<[ObjectIdentifier: String]>([:])

    /// The name of a type, as `String(describing:)` writes it.
    static func name(of type: Any.Type) -> String {
        known.withLock { known in
            if let name = known[ObjectIdentifier(type)] { return name }
            // No code of a user's is called for a type.
            let name = String(describing: type)
            known[ObjectIdentifier(type)] = name
            return name
        }
    }
}
