public import Foundation

extension IOOperation {
    /// Makes the operation depend on another one, and takes its input from an optional property of that.
    ///
    /// ```swift
    /// final class Search: AsyncOperation, @unchecked Sendable { var found: [String]? }
    ///
    /// let search = Search()
    /// let count = IOBlockOperation<[String], Int>(name: "count") { $0.count }
    /// count.bind(\.input, to: search, \.found)
    /// ```
    ///
    /// If `source` succeeded but has no value there, the binding leaves the input as it is: one that was given before,
    /// by ``IOOperation/with(input:)`` for example, or that another binding sets, is used instead. If there is none
    /// when all bindings have taken effect, this operation finishes without running, with
    /// ``DependencyError/missingValue(operation:property:dependency:dependencyProperty:)``. Everything else is as for
    /// properties that are not optional.
    ///
    /// - Parameters:
    ///   - property: The input of this operation, `\.input`.
    ///   - source: The operation that has to finish first. Not this one.
    ///   - sourceProperty: What is read from `source`.
    public final func bind<Source: Operation>(
        _ property: any ReferenceWritableKeyPath<IOOperation<Input, Output>, Input?> & Sendable, to source: Source,
        _ sourceProperty: any KeyPath<Source, Input?> & Sendable
    ) {
        bindAfterSuccess(of: source) { target, source in
            if let value = source[keyPath: sourceProperty] {
                target[keyPath: property] = value
                return
            }
            if Input.self == Void.self { return }
            let error = DependencyError.missingValue(
                operation: target.displayName, property: "input", dependency: source.displayName,
                dependencyProperty: sourceProperty.name(in: Source.self))
            // The input may have been given before, and another binding may still set it.
            target.addFinalStartHandler { target in
                if (target as? IOOperation<Input, Output>)?.input == nil { throw error }
            }
        }
    }
}
