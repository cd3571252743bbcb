/// What a composite has told its parts about their observers, or what all operations were told of the observers of the process.
///
/// It ends when that is true no longer: the composite has another observer, or is part of something else. Then everything ends that
/// was derived from it, by composites inside, so that an operation needs to look at one scope only, at any depth.
///
/// One lock guards the scopes of all composites: what is derived from a scope either ends with it, or is not made.
final class ObserverScope: @unchecked Sendable {
    /// 1 once it has ended.
    private let ends = AtomicCounter()
    /// The scopes that were derived from this one. The lock of ``ObserverRegistry`` guards them, and the limit.
    private var inner: [ObserverScope] = []
    /// How many there have to be before those are removed that have ended.
    private var limit = 16

    /// Whether it has not ended.
    var isCurrent: Bool { ends.value == 0 }

    /// Creates the scope of a composite that is part of the one to which this scope belongs. Called with the lock of the registry.
    ///
    /// Complexity: O(1) on average.
    ///
    /// - Returns: `nil` if this scope has ended.
    func makeInner() -> ObserverScope? {
        guard isCurrent else { return nil }
        if inner.count >= limit {
            inner.removeAll { !$0.isCurrent }
            limit = max(16, 2 * inner.count)
        }
        let scope = ObserverScope()
        inner.append(scope)
        return scope
    }

    /// Ends the scope and all that were derived from it. Called with the lock of the registry.
    ///
    /// Complexity: linear in the number of these scopes that have not ended, and so O(1) for each that was made.
    func end() {
        var rest = [self]
        while let scope = rest.popLast() {
            if scope.isCurrent { scope.ends.add(1) }
            rest += exchange(&scope.inner, with: [])
        }
    }
}

/// Observers, as long as a scope has not ended, or at this moment only.
struct ScopedObservers {
    var scope: ObserverScope?
    /// Those of the outermost composite first.
    let registrations: [ObserverRegistration]
}
