package import Foundation

/// What an operation says of itself, without what depends on the level of the diagnostics: the times that pass meanwhile,
/// and that it is on no known queue.
package func withoutAges(_ operation: Operation) -> String {
    withoutAges(operation.debugDescription)
}

/// A description without what depends on the level of the diagnostics.
package func withoutAges(_ description: String) -> String {
    description.replacing(/\sfor\s[0-9][^,\n]*/, with: "").replacing(", on no known queue", with: "")
        .replacing("executing, told to end", with: "told to end")
}
