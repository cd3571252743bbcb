import Foundation

/// A search through composites that are nested, where what is asked can be answered from either end: from all that is
/// inside one operation, or from the composites around another one.
///
/// Where composites are nested thousands deep, one of both is small in most cases: a new operation has few parts, and the
/// outermost composite has none around it. So the search goes both ways by turns, and costs no more than a multiple of the
/// shorter one. Putting any number of operations into each other, in any order, then takes O(n log n) steps in all.
enum NestingSearch {
    /// Finds an answer.
    ///
    /// - Parameters:
    ///   - operation: The operation whose parts are searched.
    ///   - whereInside: Returns the answer from all the parts: those that ``Foundation/Operation/parts`` returns.
    ///   - composites: The composites around the other operation, the nearest first.
    ///   - whereAround: Returns the answer if it is found at one of these.
    /// - Returns: The answer of whichever search ended first; `nil` if there is none.
    static func first<Answer>(
        inside operation: Operation, whereInside: ([Operation]) -> Answer?,
        orAround composites: some Sequence<AsyncOperation>, whereAround: (AsyncOperation) -> Answer?
    ) -> Answer? {
        var composites = composites.makeIterator()
        var limit = 8
        while true {
            if let parts = operation.parts(atMost: limit) { return whereInside(parts) }
            for _ in 0..<limit {
                guard let composite = composites.next() else { return nil }
                if let answer = whereAround(composite) { return answer }
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
