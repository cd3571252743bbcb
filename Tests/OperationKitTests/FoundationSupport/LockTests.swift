import COperationSupport
import OperationKitTestSupport

@testable import OperationKit

@Suite("Writing the latest value") struct CoalescingWriterTests {
    @Test("The caller that changes the value writes it, and what comes meanwhile, if needed") func changes() {
        var writer = CoalescingWriter(0)
        #expect(writer.changed(to: 0) == nil)
        for latest in [4, 2] {
            #expect(writer.changed(to: 2) == 2)
            #expect(writer.changed(to: 3) == nil)
            #expect(writer.changed(to: latest) == nil)
            #expect(writer.wrote(2) == (latest == 2 ? nil : latest))
            if latest != 2 { #expect(writer.wrote(latest) == nil) }
            #expect(writer.changed(to: 1) == 1 && writer.wrote(1) == nil && writer.latest == 1)
        }
    }
}

@Suite("Locks", .hangGuard) struct LockTests {
    @Test("A lock is free after code under it has thrown") func throwing() {
        let (value, lock) = (Locked(0), RecursiveLock())
        #expect(throws: TestError.first) { try value.withLock { _ -> Void in throw TestError.first } }
        #expect(throws: TestError.first) { try lock.withLock { () -> Void in throw TestError.first } }
        #expect(answersOnAnotherThread { value.withLock { _ in } } && answersOnAnotherThread { lock.withLock {} })
    }
}

@Suite("Counters in C, for systems without atomic types in Swift") struct CounterTests {
    @Test("No addition of several threads is lost, and each returns a number of its own") func additions() {
        let number = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        defer { unsafe number.deallocate() }
        unsafe number.initialize(to: 0)
        let (address, sum, count) = (Int(bitPattern: number), Locked(0), 100_000)
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            let number = unsafe UnsafeMutablePointer<Int>(bitPattern: address)!
            let returned = (0..<count).reduce(0) { sum, _ in unsafe sum + ok_counter_add(number, 1) }
            sum.withLock { $0 += returned }
        }
        #expect(unsafe ok_counter_value(number) == 4 * count)
        #expect(sum.withLock(\.self) == 4 * count * (4 * count + 1) / 2)
        #expect(unsafe ok_counter_add(number, -4 * count) == 0)
    }
}
