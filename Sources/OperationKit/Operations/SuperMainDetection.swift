#if DEBUG
import Foundation

// A subclass that calls `super.main()` is finished there. If its work calls `finish` later, that has no effect, and what
// depends on the operation has started too early. Debug builds notice that.
extension AsyncOperation {
    /// What the default implementation of `main()`, or of what takes its place in a subclass, does in debug builds.
    ///
    /// - Parameter site: Where the library calls it.
    @inline(never)
    final func finishInDefaultMain(calledAt site: @autoclosure () -> MainCallSite?) {
        guard finish() else { return }
        let isOverride = SuperMainDetection.isCalledByOverride(of: self, calledAt: site)
        if isOverride { withState { $0.hasFinishedInSuperMain = true } }
    }

    /// A call of `finish` had no effect.
    final func reportFinishAfterSuperMain() {
        guard withState({ $0.hasFinishedInSuperMain }) else { return }
        SuperMainDetection.report(type(of: self))
    }
}

/// Knows which classes override `main()` and call `super.main()`.
///
/// Swift cannot be asked whether a class overrides a method. But the library calls `main()` at one place, so a default
/// implementation that returns to another place was called by an override. Each class is examined
/// one time.
enum SuperMainDetection {
    private enum Finding { case noOverride, override, reported }

    private static let findings = Locked<[ObjectIdentifier: Finding]>([:])

    /// Whether the default implementation, which has finished the operation and calls this, was called by an override.
    static func isCalledByOverride(of operation: AsyncOperation, calledAt site: () -> MainCallSite?) -> Bool {
        if let probe = operation as? any MainCallProbe {
            probe.callStack = MainCallSite.currentCallStack
            return false
        }
        // If it is called by hand before the start, the operation has not finished.
        guard type(of: operation) != AsyncOperation.self, operation.isFinished else { return false }
        let id = ObjectIdentifier(type(of: operation))
        if let finding = findings.withLock({ $0[id] }) { return finding != .noOverride }
        let callStack = MainCallSite.currentCallStack
        let isOverride = site().map { !$0.matches(callStack) } ?? false
        findings.withLock { $0[id] = isOverride ? .override : .noOverride }
        return isOverride
    }

    /// Reports a class, once.
    static func report(_ type: AsyncOperation.Type) {
        let isFirst = findings.withLock { $0.updateValue(.reported, forKey: ObjectIdentifier(type)) != .reported }
        if isFirst { ExecutionRecording.current.report(.finishedAfterSuperMain(type)) }
    }
}

/// Where a default implementation of `main()` returns to when the library calls it.
struct MainCallSite: Sendable {
    /// The place in the call stack.
    private let index: Int
    private let address: UInt

    /// Finds where the call stacks of the default implementation differ: called by the library, and by an override.
    ///
    /// - Returns: `nil` where call stacks cannot be read, or where optimization has removed the difference.
    init?(_ probe: any MainCallProbe, overriding: any MainCallProbe) {
        for probe in [probe, overriding] { probe.startWork() }
        let index = zip(probe.callStack, overriding.callStack).enumerated().first { $1.0 != $1.1 }?.offset
        guard let index else { return nil }
        self.index = index
        address = probe.callStack[index]
    }

    func matches(_ callStack: [UInt]) -> Bool {
        callStack.indices.contains(index) && callStack[index] == address
    }

    fileprivate static var currentCallStack: [UInt] { Thread.callStackReturnAddresses.map(\.uintValue) }

    /// That of `main()`.
    static let main = MainCallSite(MainProbe(), overriding: OverridingMainProbe())
}

/// An operation that is never started, to see where its `main()` is called. Used by one thread.
protocol MainCallProbe: AsyncOperation {
    var callStack: [UInt] { get set }
}

private class MainProbe: AsyncOperation, MainCallProbe, @unchecked Sendable {
    var callStack: [UInt] = []
}

private final class OverridingMainProbe: MainProbe, @unchecked Sendable {
    override func main() { super.main() }
}
#endif
