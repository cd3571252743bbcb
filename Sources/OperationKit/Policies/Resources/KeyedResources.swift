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
/// A limit exists as long as an operation that requires it does, or a variable holds it. After that nothing is left of its key.
public final class KeyedConcurrencyLimit: Sendable {
    /// The name of all limits, to which a key is added.
    public let name: String
    /// How many operations with the same key may work at the same time.
    public let limit: Int
    /// How many operations with the same key may wait.
    public let maximumWaiting: Int

    let resources = KeyedResources<ConcurrencyLimit>()

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
    /// - Parameter key: The key. All operations without one share a limit, too.
    public subscript<Key: Hashable & Sendable>(key: Key?) -> ConcurrencyLimit {
        resources.resource(for: key) {
            ConcurrencyLimit(title(of: key, in: name), limit, maximumWaiting: maximumWaiting)
        }
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
/// An exclusive access exists as long as an operation that requires it does, or a variable holds it. After that nothing is left of
/// its key.
public final class KeyedExclusiveAccess: Sendable {
    /// The name of all, to which a key is added.
    public let name: String
    /// How many operations with the same key may wait.
    public let maximumWaiting: Int

    let resources = KeyedResources<ExclusiveAccess>()

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
    /// - Parameter key: The key. All operations without one share an exclusive access, too.
    public subscript<Key: Hashable & Sendable>(key: Key?) -> ExclusiveAccess {
        resources.resource(for: key) { ExclusiveAccess(title(of: key, in: name), maximumWaiting: maximumWaiting) }
    }
}

private func title(of key: (some Hashable)?, in name: String) -> String {
    key.map { "\(name) \($0)" } ?? name
}

/// The resources of keys, as long as they are used.
final class KeyedResources<Resource: OperationResource>: Sendable {
    private struct Key: Hashable, @unchecked Sendable {
        let value: AnyHashable
    }

    private let entries = Locked<[Key: WeakReference<Resource>]>([:])

    var count: Int { entries.withLock(\.count) }

    /// Returns the resource of a key, a new one if there is none. Keys are compared with the lock held.
    func resource<Value: Hashable & Sendable>(for value: Value?, make: () -> Resource) -> Resource {
        let key = Key(value: value.map(AnyHashable.init) ?? AnyHashable(Value?.none))
        if let resource = entries.withLock({ $0[key]?.object }) { return resource }
        let new = make()
        // A key such as `.nan` can never be looked up.
        if key != key { return new }
        let resource = entries.withLock { entries in
            if let resource = entries[key]?.object { return resource }
            entries[key] = WeakReference(new)
            return new
        }
        if resource === new {
            new.onDeinit { [weak self] in self?.resourceWasReleased(key) }
        }
        return resource
    }

    private func resourceWasReleased(_ key: Key) {
        // Another resource may have taken the place. If it is released at this moment, then not with the lock held.
        let successor = entries.withLock { entries in
            let successor = entries[key]?.object
            if successor == nil { entries[key] = nil }
            return successor
        }
        withExtendedLifetime(successor) {}
    }
}
