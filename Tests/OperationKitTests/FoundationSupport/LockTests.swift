import COperationSupport
import OperationKitTestSupport

@testable import OperationKit

@Suite("Writing the latest value") struct CoalescingWriterTests {
    @Test("The caller that changes the value writes it, unless the target has it, and has nothing more to write")
    func oneCaller() {
        var writer = CoalescingWriter(0)
        #expect(writer.changed(to: 0) == nil)
        #expect(writer.changed(to: 1) == 1)
        #expect(writer.wrote(1) == nil && writer.latest == 1)
        #expect(writer.changed(to: 2) == 2)
    }

    @Test(
        "What changes during a write is left to the caller that writes: the latest value, unless it is what was written"
    )
    func changesDuringAWrite() {
        for latest in [3, 1] {
            var writer = CoalescingWriter(0)
            #expect(writer.changed(to: 1) == 1)
            #expect(writer.changed(to: 2) == nil)
            #expect(writer.changed(to: latest) == nil)
            #expect(writer.wrote(1) == (latest == 1 ? nil : latest))
            if latest != 1 { #expect(writer.wrote(latest) == nil) }
            #expect(writer.changed(to: 4) == 4)
        }
    }
}

@Suite("Locks", .hangGuard) struct LockTests {
    @Test("A lock is free after code under it has thrown") func throwing() {
        let (value, lock) = (Locked(0), RecursiveLock())
        #expect(throws: TestError.first) {
            try value.withLock { number -> Void in
                number += 1
                throw TestError.first
            }
        }
        #expect(throws: TestError.first) { try lock.withLock { () -> Void in throw TestError.first } }
        #expect(answersOnAnotherThread { value.withLock { _ in } } && answersOnAnotherThread { lock.withLock {} })
    }
}

@Suite("Counters in C, for systems without atomic types in Swift") struct CounterTests {
    @Test("No addition of several threads is lost, and each returns a number of its own")
    func additions() {
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
