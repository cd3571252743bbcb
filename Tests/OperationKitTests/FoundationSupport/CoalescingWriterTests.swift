import Testing

@testable import OperationKit

@Suite("Writing the latest value") struct CoalescingWriterTests {
    @Test("The caller that changes the value writes it, and has nothing more to write") func oneCaller() {
        var writer = CoalescingWriter(0)
        #expect(writer.changed(to: 1) == 1)
        #expect(writer.wrote(1) == nil)
        #expect(writer.latest == 1)
        #expect(writer.changed(to: 2) == 2)
    }

    @Test("A value that the target has is not written again") func sameValue() {
        var writer = CoalescingWriter(1)
        #expect(writer.changed(to: 1) == nil)
    }

    @Test("What changes during a write is left to the caller that writes, the latest value only")
    func changeDuringAWrite() {
        var writer = CoalescingWriter(0)
        #expect(writer.changed(to: 1) == 1)
        #expect(writer.changed(to: 2) == nil)
        #expect(writer.changed(to: 3) == nil)
        #expect(writer.wrote(1) == 3)
        #expect(writer.wrote(3) == nil)
        #expect(writer.changed(to: 4) == 4)
    }

    @Test("A value that changes and changes back during a write is not written again")
    func changeBackDuringAWrite() {
        var writer = CoalescingWriter(0)
        #expect(writer.changed(to: 1) == 1)
        #expect(writer.changed(to: 2) == nil)
        #expect(writer.changed(to: 1) == nil)
        #expect(writer.wrote(1) == nil)
    }
}
