import Foundation
import OperationKit

extension Case {
    static let memory = Case(
        id: "memory",
        summary: "the memory that a compound takes at its peak, with its children",
        baseline: "the memory of as many children alone",
        timed: "no time: by how much the peak of a process grows that makes the children and, on our side, runs them"
    ) { scale in
        let sides = [MemoryProbe.Kind.compound, .children].map { kind in Side.memory(of: kind, scale.many) }
        let comparison = Comparison(
            what: "\(grouped(scale.many)) children", ours: sides[0].name, baseline: sides[1].name, goal: 1.25)
        return [Experiment(quantity: .bytes, sides: sides, comparisons: [comparison])]
    }
}

extension Side {
    /// A side whose memory is measured, in a process of its own.
    static func memory(of kind: MemoryProbe.Kind, _ count: Int) -> Side {
        Side(name: "\(kind.rawValue), \(grouped(count))") {
            try MemoryProbe(kind: kind, count: count).inProcessOfItsOwn()
        }
    }
}
