/// What types are called in messages. Writing that down takes as long as the whole life of an operation, so it is done once for
/// each type.
enum TypeNames {
    private static let known = Locked<[ObjectIdentifier: String]>([:])

    /// The name of a type, as `String(describing:)` writes it.
    static func name(of type: Any.Type) -> String {
        let id = ObjectIdentifier(type)
        if let name = known.withLock({ $0[id] }) { return name }
        let name = String(describing: type)
        known.withLock { $0[id] = name }
        return name
    }
}
