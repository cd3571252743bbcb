import COperationSupport
import OperationKitTestSupport

@Suite("Counters in C, for systems without atomic types in Swift") struct CounterTests {
    @Test("No addition of several threads is lost, and each thread gets a number of its own")
    func additions() {
        let number = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        defer { unsafe number.deallocate() }
        unsafe number.initialize(to: -20_000)
        let address = Int(bitPattern: number)
        let seen = (0..<4).map { _ in Locked(Set<Int>()) }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            let number = unsafe UnsafeMutablePointer<Int>(bitPattern: address)!
            seen[thread].withLock { seen in
                for _ in 0..<10_000 { unsafe seen.insert(ok_counter_add(number, 1)) }
            }
        }
        #expect(unsafe ok_counter_value(number) == 20_000)
        #expect(seen.reduce(into: Set()) { $0.formUnion($1.withLock(\.self)) } == Set(-19_999...20_000))
        #expect(unsafe ok_counter_add(number, -20_000) == 0)
    }
}
