public import Foundation

/// Work has lost its way to say that it is done: it can never end by itself.
public enum LostFinishError: Error, Equatable {
    /// The closure of the operation released every copy of its `finish`, and called none. Code 1.
    case operation(name: String)
    /// The completion of an item or batch was released without having been called. `unit` is "item" or "batch" with its
    /// index, `type` the type that performed it. Code 2.
    case unit(name: String, type: String)
    /// The completion of a whole run was released without having been called, by a type that performs all items in a way
    /// of its own. `name` is that of the run, which is the type's if it was not changed. Code 3.
    case run(name: String)
}

extension LostFinishError: LocalizedError, CustomNSError, ReportedError {
    var code: Int {
        switch self {
        case .operation: 1
        case .unit: 2
        case .run: 3
        }
    }

    func text(depth: Int) -> String {
        switch self {
        case .operation(let name):
            "The operation “\(name)” was ended, because its closure released finish without calling it. Call it on every path."
        case .unit(let name, let type):
            "“\(type)” released the completion of \(name) without calling it. Call it on every path."
        case .run(let name):
            "“\(name)” was ended, because its completion was released without having been called. Call it on every path."
        }
    }
}
