import Foundation

/// A search through composites that are nested, where what is asked can be answered from either end: from all that is
/// inside one operation, or from the composites around another one.
///
/// Where composites are nested thousands deep, one of both is small in most cases: a new operation has few parts, and the
/// outermost composite has none around it. So the search goes both ways by turns, and costs no more than a multiple of the
/// shorter one. Putting any number of operations into each other, in any order, then takes O(n log n) steps in all.
enum NestingSearch {
    /// A step of the search outward.
    enum Step<Answer> {
        case found(Answer)
        /// Nothing was found. The steps up to the next one cost as much as so many operations inside.
        case next(cost: Int)
        /// This cannot be answered from here.
        case unknown
    }

    /// Returns the answer of whichever search ends first.
    ///
    /// - Parameters:
    ///   - operation: The operation whose parts are searched.
    ///   - whereInside: Returns the answer from all the parts: those that ``Foundation/Operation/parts`` returns.
    ///   - steps: The steps outward.
    /// - Returns: The answer; `nil` if there is none.
    static func answer<Answer>(
        inside operation: Operation, whereInside: ([Operation]) -> Answer?,
        orAround steps: some Sequence<Step<Answer>>
    ) -> Answer? {
        var steps = steps.makeIterator()
        var limit = 8
        // A step that costs more than is left is taken when the search inside has cost as much.
        var credit = 0
        while true {
            if let parts = operation.parts(atMost: limit) { return whereInside(parts) }
            credit += limit
            while credit > 0 {
                switch steps.next() {
                case .found(let answer)?: return answer
                case .next(let cost)?: credit -= cost
                case .unknown?: return whereInside(operation.parts)
                case nil: return nil
                }
            }
            limit *= 4
        }
    }
}

extension Operation {
    /// The operation itself, and all that is inside it and has not finished, at any depth.
    var parts: [Operation] { parts(atMost: .max) ?? [self] }

    /// The same, or `nil` if they take more than `limit` steps to find.
    func parts(atMost limit: Int) -> [Operation]? {
        var parts = [self]
        var next = 0
        while next < parts.count {
            if let group = (parts[next] as? AsyncOperation)?.ownChildren {
                guard let inside = group.operations(atMost: limit - parts.count) else { return nil }
                parts += inside
            }
            next += 1
        }
        return parts
    }
}
