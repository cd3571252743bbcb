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
