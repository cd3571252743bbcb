import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit
@testable import OperationKitTimelines

@Suite("Rows of a timeline", .hangGuard) struct TimelineRowsTests {
    @Test("A row takes 64 bytes, a dependency 8") func sizes() {
        #expect(MemoryLayout<TimelineRows.Row>.stride <= 64 && MemoryLayout<TimelineRows.Dependency>.stride <= 8)
    }

    @Test("Every operation is found again, whatever its identifier") func places() throws {
        let seed = SplitMix64.freshSeed()
        var random = SplitMix64(seed: seed)
        let ids = Set((0..<5_000).map { UInt64($0) } + (0..<5_000).map { _ in random.next() << 20 }).shuffled(
            using: &random)
        var rows = TimelineRows(maximumCount: ids.count)
        for (number, id) in ids.enumerated() {
            #expect(rows.row(of: OperationID(id)) == nil, "seed \(seed)")
            #expect(rows.row(of: OperationID(id), name: "\(id)", type: AsyncOperation.self) == number, "seed \(seed)")
        }
        for (number, id) in ids.enumerated() { #expect(rows.row(of: OperationID(id)) == number, "seed \(seed)") }
        #expect(rows.row(of: OperationID(1 << 63), name: "", type: AsyncOperation.self) == nil)
    }

    @Test("The number of retries, of waits and of dependencies that are kept has a bound") func bounds() {
        let operation = AsyncOperation()
        var rows = TimelineRows(maximumCount: 2)
        func record(_ kind: OperationEvent.Kind, at time: Int64) {
            let event = OperationEvent(
                operation: operation.observationID, name: "poll", type: AsyncOperation.self, kind: kind,
                nanoseconds: time)
            rows.record(event, ObservedFacts(of: operation, at: kind), at: time)
        }
        for number in 1...250 {
            record(.waiting(for: "\(number)"), at: Int64(2 * number))
            record(.retrying(attempt: number, error: TestError.first, delay: .zero), at: Int64(2 * number + 1))
        }
        record(.running, at: 600)
        record(.finished(error: nil), at: 700)
        let row = rows.row(of: operation.observationID) ?? -1
        rows.addDependencies((1_000..<1_100).map { OperationID($0) }, to: row)
        let entry = rows.timeline(startDate: Date(), now: 800).entries[0]
        #expect(entry.waits.map(\.reason) == (1...100).map(String.init))
        #expect(entry.retries.map(\.attempt) == Array(1...100))
        #expect(entry.dependencies.count == 16)
    }

    @Test("Dependencies are kept once each, in their order, unless their identifiers are too far away")
    func dependencies() {
        var rows = TimelineRows(maximumCount: 2)
        let first = rows.row(of: OperationID(1 << 40), name: "", type: AsyncOperation.self) ?? -1
        let base: UInt64 = 1 << 40
        let ids = [OperationID(base - 1), OperationID(base + 5), OperationID(3)]
        rows.addDependencies(ids, to: first)
        rows.addDependencies([ids[0], OperationID(base + 6), ids[1]], to: first)
        #expect(rows.dependencies(of: first).map(\.number) == [base - 1, base + 5, base + 6])
    }

    @Test("A copy stays as it was while the rows change") func copies() {
        var rows = TimelineRows(maximumCount: 5_000)
        for number in 0..<3_000 { _ = rows.row(of: OperationID(UInt64(number)), name: "a", type: AsyncOperation.self) }
        let copy = rows
        for number in 0..<5_000 { _ = rows.row(of: OperationID(UInt64(number)), name: "b", type: AsyncOperation.self) }
        rows.rename(0, "c")
        #expect(
            copy.rows.count == 3_000 && copy.row(of: OperationID(4_000)) == nil && copy.texts[copy.rows[0].name] == "a")
        #expect(
            rows.rows.count == 5_000 && rows.texts[rows.rows[0].name] == "c" && rows.texts[rows.rows[9].name] == "a")
    }

    @Test("Texts are found again, and the same text is not stored twice in succession") func texts() {
        var texts = TimelineTexts()
        #expect(texts.reference(to: "") == 0 && texts[0] == "")
        let names = (0..<20_000).map { "a name with the number \($0), é👩‍👩‍👧" }
        let references = names.map { texts.reference(to: $0) }
        #expect(zip(names, references).allSatisfy { texts[$1] == $0 && texts.matches($1, $0) })
        #expect(texts.reference(to: names[19_999]) == references[19_999])
        #expect(!texts.matches(references[0], names[1]))
    }

    @Test("Of a text that is too long, the beginning is kept, in whole characters of Unicode") func longTexts() {
        var texts = TimelineTexts()
        let limit = TimelineTexts.longestText
        let fitting = String(repeating: "a", count: limit)
        let whole = texts.reference(to: fitting)
        let long = texts.reference(to: String(repeating: "é", count: limit))
        #expect(texts[whole] == fitting)
        let cut = texts[long]
        #expect(cut.utf8.count <= limit && cut.utf8.count > limit - 4 && cut.hasPrefix("éé") && cut.hasSuffix("é…"))
    }
}
