#if !canImport(ObjectiveC)
import Synchronization
#endif

/// A number that any thread may read and change at any time.
///
/// Reading it costs one instruction where `Synchronization` is there, which every operation does several times. On Apple platforms
/// that is macOS 15 and later, so a lock takes its place.
struct AtomicCounter: ~Copyable, Sendable {
    #if canImport(ObjectiveC)
    private let number = Locked(0)

    var value: Int { number.withLock(\.self) }

    /// Changes the number.
    ///
    /// - Returns: The new one.
    @discardableResult
    borrowing func add(_ difference: Int) -> Int {
        number.withLock { number in
            number += difference
            return number
        }
    }
    #else
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .acquiring) }

    /// Changes the number.
    ///
    /// - Returns: The new one.
    @discardableResult
    borrowing func add(_ difference: Int) -> Int {
        number.wrappingAdd(difference, ordering: .acquiringAndReleasing).newValue
    }
    #endif
}
