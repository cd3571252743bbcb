public import Foundation

/// Why an operation could not become the child of a compound. The operation is untouched, and may be used elsewhere.
public enum CompoundAdditionError: Error, Equatable {
    /// All children of the compound have finished, so it takes no more. Code 1.
    case compoundFinished(operation: String, compound: String)
    /// The operation is a child already, of this compound or of another one. Or a closure of the compound has made it,
    /// and it contains the compound, or is a composite that executes, and may wait for the compound. Code 2.
    case alreadyAdded(operation: String, compound: String)
}

extension CompoundAdditionError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .compoundFinished: 1
        case .alreadyAdded: 2
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .compoundFinished(let operation, let compound):
            "The operation “\(operation)” was not added to “\(compound)”, which has finished. Add it before the last child ends."
        case .alreadyAdded(let operation, let compound):
            "The operation “\(operation)” was not added to “\(compound)”: it is a child already, \(operation == compound ? "is or contains" : "contains") “\(compound)”, or may wait for “\(compound)”. Add a new operation, once, to one compound."
        }
    }
}
