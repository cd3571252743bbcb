public import Foundation

/// An operation whose properties can be bound to those of others. Every ``AsyncOperation`` is one.
///
/// It is a protocol so that `bind` knows the properties of the subclass it is called on. There is nothing to implement.
public protocol BindingTarget: AsyncOperation {}

extension AsyncOperation: BindingTarget {}

extension BindingTarget {
    /// Makes the operation depend on another one, and hands over a value before it starts its work.
    ///
    /// ```swift
    /// final class Fetch: AsyncOperation, @unchecked Sendable { var users: [String] = [] }
    /// final class Greet: AsyncOperation, @unchecked Sendable { var users: [String] = [] }
    ///
    /// let fetch = Fetch()
    /// let greet = Greet()
    /// greet.bind(\.users, to: fetch, \.users)
    /// let queue = OperationQueue()
    /// for operation in [fetch, greet] { queue.addOperation(operation) }
    /// ```
    ///
    /// The value is read and written on the thread that starts this operation, before its conditions, after `source` has
    /// finished. Several bindings take effect in the order in which they were made. One that is made after the start has
    /// no effect, which debug builds report (``MisuseReport/lateDependency(operation:dependency:)``). Complexity: linear
    /// in the bindings that are there, as is `addDependency(_:)`.
    ///
    /// If `source` failed or was cancelled, nothing is handed over, and this operation finishes without running, with
    /// ``DependencyError/dependencyFailed(operation:dependency:error:)``. A `source` that is no ``AsyncOperation``
    /// counts as cancelled when its `isCancelled` is true, and as failed when it is a ``FailableOperation`` with an
    /// error. If `source` did not run because of another operation, the error names that one. An operation that is
    /// started by hand before `source` has finished ends with
    /// ``DependencyError/dependencyUnfinished(operation:dependency:)``. If this operation itself is cancelled before
    /// its start, nothing is handed over either.
    ///
    /// - Parameters:
    ///   - property: What is set on this operation.
    ///   - source: The operation that has to finish first. Not this one.
    ///   - sourceProperty: What is read from `source`.
    public func bind<Source: Operation, Value>(
        _ property: any ReferenceWritableKeyPath<Self, Value> & Sendable, to source: Source,
        _ sourceProperty: any KeyPath<Source, Value> & Sendable
    ) {
        bindAfterSuccess(of: source) { target, source in
            target[keyPath: property] = source[keyPath: sourceProperty]
        }
    }

    /// Makes the operation depend on another one, and hands over a value to an optional property before it starts its
    /// work.
    ///
    /// The value is handed over at the start, and only if `source` succeeds; otherwise this operation finishes
    /// without running, with a ``DependencyError``. It is the same as the binding of a property that is not optional.
    ///
    /// - Parameters:
    ///   - property: What is set on this operation.
    ///   - source: The operation that has to finish first. Not this one.
    ///   - sourceProperty: What is read from `source`.
    public func bind<Source: Operation, Value>(
        _ property: any ReferenceWritableKeyPath<Self, Value?> & Sendable, to source: Source,
        _ sourceProperty: any KeyPath<Source, Value> & Sendable
    ) {
        bindAfterSuccess(of: source) { target, source in
            target[keyPath: property] = source[keyPath: sourceProperty]
        }
    }

    /// Makes the operation depend on another one, and hands over the value of an optional property before it begins its work.
    ///
    /// ```swift
    /// final class Greet: AsyncOperation, @unchecked Sendable { var names: [String] = [] }
    ///
    /// let fetch = TaskOperation(name: "fetch") { ["Ada", "Grace"] }
    /// let greet = Greet()
    /// greet.bind(\.names, to: fetch, \.output)
    /// ```
    ///
    /// If `source` succeeded but has no value there, this operation finishes without running, with
    /// ``DependencyError/missingValue(operation:property:dependency:dependencyProperty:)``. Everything else is as for a property
    /// of the same type. A target that is optional, too, takes `nil` as a value.
    ///
    /// - Parameters:
    ///   - property: What is set on this operation.
    ///   - source: The operation that has to finish first. Not this one.
    ///   - sourceProperty: What is read from `source`.
    public func bind<Source: Operation, Value>(
        _ property: any ReferenceWritableKeyPath<Self, Value> & Sendable, to source: Source,
        _ sourceProperty: any KeyPath<Source, Value?> & Sendable
    ) {
        bindAfterSuccess(of: source) { target, source in
            guard let value = source[keyPath: sourceProperty] else {
                throw DependencyError.missingValue(
                    operation: target.displayName, property: property.name(in: Self.self),
                    dependency: source.displayName, dependencyProperty: sourceProperty.name(in: Source.self))
            }
            target[keyPath: property] = value
        }
    }

    /// Makes the operation depend on another one, and calls a closure with both before it starts its work.
    ///
    /// ```swift
    /// let fetch = TaskOperation { ["Ada", "Grace"] }
    /// let greet = IOOperation<[String], String>()
    /// greet.bind(to: fetch) { greet, fetch in
    ///     greet.input = try fetch.result?.get().filter { $0 != "Ada" } ?? []
    /// }
    /// ```
    ///
    /// The closure is called once, however `source` ended, and decides what that means: it may hand over values, finish
    /// this operation, or throw. What it throws ends this operation without running it. It is called on the thread that
    /// starts this operation, before its conditions, in the order in which the bindings were made; not at all if this operation was
    /// cancelled or given an outcome before its start, or an earlier binding has ended it. It is released then. It gets both operations
    /// as arguments, so it need not capture them.
    ///
    /// - Parameters:
    ///   - source: The operation that has to finish first, of any class. Not this one.
    ///   - transfer: What is done with both of them.
    public func bind<Source: Operation>(
        to source: Source, _ transfer: @escaping @Sendable (_ target: Self, _ source: Source) throws -> Void
    ) {
        addDependency(source)
        let sourceName = source.ownName
        // The dependency holds the source, the handler does not, because Foundation's lists are taken apart without
        // recursion when a chain is freed, and closures would not be.
        let isAdded = addStartHandler { [weak source] target in
            guard let source else {
                throw DependencyError.dependencyUnfinished(
                    operation: target.displayName, dependency: sourceName ?? String(describing: Source.self))
            }
            // The handler was added to this operation, so the cast succeeds.
            if let target = target as? Self { try transfer(target, source) }
        }
        if isAdded { return }
        ExecutionRecording.report(
            .lateDependency(operation: displayName, dependency: source.displayName))
    }

    func bindAfterSuccess<Source: Operation>(
        of source: Source, _ transfer: @escaping @Sendable (_ target: Self, _ source: Source) throws -> Void
    ) {
        bind(to: source) { target, source in
            try target.checkSuccess(of: source)
            try transfer(target, source)
        }
    }
}

extension AsyncOperation {
    /// Makes the operation depend on another one, and on its success.
    ///
    /// In Foundation, what depends on an operation runs however that ended. With this, the operation finishes without
    /// running if `dependency` failed or was cancelled, with
    /// ``DependencyError/dependencyFailed(operation:dependency:error:)``. A `dependency` that is no ``AsyncOperation``
    /// counts as cancelled when its `isCancelled` is true, and as failed when it is a ``FailableOperation`` with an
    /// error. Call this method before the start: later it has no effect, which debug builds report
    /// (``MisuseReport/lateDependency(operation:dependency:)``). A compound counts an operation that did not run for this
    /// reason with the failure that is responsible: see ``SuboperationError/blockedCount``.
    ///
    /// ```swift
    /// let save = ThrowingBlockOperation(name: "save") { /* … */ }
    /// let announce = AsyncBlockOperation(name: "announce") { finish in finish() }
    /// announce.requireSuccess(of: save)
    /// ```
    ///
    /// - Parameter dependency: The operation that has to finish first, with success. Not this one.
    public final func requireSuccess(of dependency: Operation) {
        bindAfterSuccess(of: dependency) { _, _ in }
    }

    fileprivate func checkSuccess(of source: Operation) throws {
        guard source.isFinished else {
            throw DependencyError.dependencyUnfinished(operation: displayName, dependency: source.displayName)
        }
        guard let error = source.endingError else { return }
        let cause = RootCause(source, error: error)
        throw SkippedError(
            error: DependencyError.dependencyFailed(
                operation: displayName, dependency: cause.name, error: cause.error), cause: cause)
    }
}

extension AnyKeyPath {
    /// The names of the properties on the path, if all of them are known at run time: those of computed properties are not, nor
    /// those of stored ones that subclasses may override.
    func name(in root: Any.Type) -> String? {
        let (text, prefix) = (debugDescription, "\\\(root).")
        guard text.hasPrefix(prefix) else { return nil }
        let name = text.dropFirst(prefix.count)
        return name.contains("<") ? nil : String(name)
    }
}

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
            let final = StartHandler(order: .first) { target in
                if (target as? IOOperation<Input, Output>)?.input == nil { throw error }
            }
            target.withState { $0.gates?.add(final) }
        }
    }
}
