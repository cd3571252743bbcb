/// Objects that are shared by all who use the same key, as long as one of them does.
final class KeyedObjects<Object: AnyObject & Sendable>: Sendable {
    struct Key: Hashable, @unchecked Sendable {
        let value: AnyHashable
    }

    let entries = Locked<[Key: WeakReference<Object>]>([:])

    /// Returns the object of a key, a new one if there is none. Keys are hashed and
    /// compared with the lock held, also when an object is freed.
    ///
    /// - Parameters:
    ///   - value: The key. All who use none share an object, too.
    ///   - make: Makes the object, which calls `released` when it is freed.
    /// - Returns: The object, which is kept by those who use it.
    func object<Value: Hashable & Sendable>(
        for value: Value?, make: (_ released: @escaping @Sendable () -> Void) -> Object
    ) -> Object {
        // Without the optional: a key that has a class is the same for whichever of its types.
        let key = Key(value: value.map(AnyHashable.init) ?? AnyHashable(Value?.none))
        if let object = entries.withLock({ $0[key]?.object }) { return object }
        // Not weakly: there is no cycle, and LeakSanitizer would report the side table of an object that is static.
        let new = make { [self] in
            // Another object may have taken the place. If it, or its key, is released at this moment, then not with the lock held.
            _ = entries.withLock { entries in
                let successor = entries[key]?.object
                let kept = entries.index(forKey: key).map { entries[$0].key }
                if successor == nil { entries.forget(key) }
                return (successor, kept)
            }
        }
        // A key such as `.nan` can never be looked up.
        if key != key { return new }
        return entries.withLock { entries in
            // Another thread may have been faster.
            if let object = entries[key]?.object { return object }
            entries[key] = WeakReference(new)
            return new
        }
    }
}

extension Dictionary {
    /// Removes an entry. Gives back most of the memory when few are left, which a dictionary does not do by itself.
    ///
    /// Complexity: amortized O(1).
    mutating func forget(_ key: Key) {
        self[key] = nil
        if capacity > 8 * count + 64 { self = reduce(into: [:]) { $0[$1.0] = $1.1 } }
    }
}
