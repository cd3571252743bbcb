package import Foundation

/// What an operation says of itself, without the times that pass meanwhile.
package func withoutAges(_ operation: Operation) -> String {
    operation.debugDescription.replacing(/\sfor\s[0-9][^,\n]*/, with: "")
}
