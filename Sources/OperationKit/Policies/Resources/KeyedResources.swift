/// A ``ConcurrencyLimit`` for each key, such as a host.
///
/// ```swift
/// enum Limits {
///     static let hosts = KeyedConcurrencyLimit("host", 4)
/// }
///
/// let queue = OperationQueue()
/// for address in ["https://swift.org/a", "https://swift.org/b", "https://example.com"] {
///     let load = TaskOperation(name: address) { address.count }
///     load.require(Limits.hosts[URL(string: address)?.host])
///     queue.addOperation(load)
/// }
/// ```
///
/// A limit exists until the operations that require it have ended, or as long as a variable holds it. After that nothing is left of
/// its key.
public final class KeyedConcurrencyLimit: Sendable {
    /// The name of all limits, to which a key is added.
    public let name: String
    /// How many operations with the same key may work at the same time.
    public let limit: Int
    /// How many operations with the same key may wait.
    public let maximumWaiting: Int

    let resources = KeyedObjects<ConcurrencyLimit>()

    /// Creates the limits.
    ///
    /// - Parameters:
    ///   - name: Their name, for errors and descriptions.
    ///   - limit: How many operations with the same key may work at the same time. Traps if it is less than 1.
    ///   - maximumWaiting: How many operations with the same key may wait. One more ends with
    ///     ``ResourceError/tooManyWaiting(operation:resource:maximum:)``. Traps if it is negative.
    public init(_ name: String, _ limit: Int, maximumWaiting: Int = .max) {
        precondition(limit > 0, "OperationKit: the concurrency limit “\(name)” would let \(limit) operations through")
        precondition(maximumWaiting >= 0, "OperationKit: at most \(maximumWaiting) operations could wait for “\(name)”")
        (self.name, self.limit, self.maximumWaiting) = (name, limit, maximumWaiting)
    }

    /// Returns the limit of a key: the same one as long as it is used, from any thread.
    ///
    /// Use one type for all keys. Keys of different types are different keys: a `URL` and a `String` of the same text have
    /// two limits. Numbers of the same value are an exception, as for `AnyHashable`.
    ///
    /// Keys are hashed and compared with a lock held, also on threads that release operations: this must not wait for other
    /// threads, nor ask for a key's resource.
    ///
    /// - Parameter key: The key. Operations without one share a limit, too: one for each type.
    public subscript<Key: Hashable & Sendable>(key: Key?) -> ConcurrencyLimit {
        resources.resource(for: key, of: name) { ConcurrencyLimit($0, limit, maximumWaiting: maximumWaiting) }
    }
}

/// An ``ExclusiveAccess`` for each key, such as a file or an account.
///
/// ```swift
/// let files = KeyedExclusiveAccess("file")
/// let save = TaskOperation(name: "save") { 1 }
/// save.require(files["notes.txt"])
/// ```
///
/// An exclusive access exists until the operations that require it have ended, or as long as a variable holds it. After that nothing is
/// left of its key.
public final class KeyedExclusiveAccess: Sendable {
    /// The name of all, to which a key is added.
    public let name: String
    /// How many operations with the same key may wait.
    public let maximumWaiting: Int

    let resources = KeyedObjects<ExclusiveAccess>()

    /// Creates the exclusive accesses.
    ///
    /// - Parameters:
    ///   - name: Their name, for errors and descriptions.
    ///   - maximumWaiting: How many operations with the same key may wait. One more ends with
    ///     ``ResourceError/tooManyWaiting(operation:resource:maximum:)``. Traps if it is negative.
    public init(_ name: String, maximumWaiting: Int = .max) {
        precondition(maximumWaiting >= 0, "OperationKit: at most \(maximumWaiting) operations could wait for “\(name)”")
        (self.name, self.maximumWaiting) = (name, maximumWaiting)
    }

    /// Returns the exclusive access of a key: the same one as long as it is used, from any thread.
    ///
    /// Use one type for all keys. Keys of different types are different keys: a `URL` and a `String` of the same text have
    /// two exclusive accesses. Numbers of the same value are an exception, as for `AnyHashable`.
    ///
    /// Keys are hashed and compared with a lock held, also on threads that release operations: this must not wait for other
    /// threads, nor ask for a key's resource.
    ///
    /// - Parameter key: The key. Operations without one share an exclusive access, too: one for each type.
    public subscript<Key: Hashable & Sendable>(key: Key?) -> ExclusiveAccess {
        resources.resource(for: key, of: name) { ExclusiveAccess($0, maximumWaiting: maximumWaiting) }
    }
}

extension KeyedObjects where Object: OperationResource {
    fileprivate func resource(
        for key: (some Hashable & Sendable)?, of name: String, make: (_ name: String) -> Object
    ) -> Object {
        object(for: key) { released in
            let resource = make(key.map { "\(name) \($0)" } ?? name)
            resource.released = released
            return resource
        }
    }
}
