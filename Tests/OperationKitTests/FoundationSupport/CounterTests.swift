import COperationSupport
import OperationKitTestSupport

@Suite("Counters in C, for systems without atomic types in Swift") struct CounterTests {
    @Test("No addition of several threads is lost, and each returns a number of its own")
    func additions() {
        let number = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        defer { unsafe number.deallocate() }
        unsafe number.initialize(to: 0)
        let (address, sum, count) = (Int(bitPattern: number), Locked(0), 500_000)
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
