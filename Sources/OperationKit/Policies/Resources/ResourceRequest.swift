/// The resources and circuit breakers that one operation requires, as a value.
struct ResourceRequest: Sendable {
    typealias Limit = (resource: OperationResource, duration: Duration)

    /// The resources, and how long the operation waits for each at most.
    private(set) var resources: [(resource: OperationResource, duration: Duration?)] = []
    private(set) var circuitBreakers: [CircuitBreaker] = []

    /// A resource that is required again counts once, with the shorter duration.
    mutating func add(_ resource: OperationResource, within duration: Duration?) {
        guard let index = resources.firstIndex(where: { $0.resource === resource }) else {
            resources.append((resource, duration))
            return
        }
        if let duration { resources[index].duration = min(duration, resources[index].duration ?? duration) }
    }

    mutating func add(_ circuitBreaker: CircuitBreaker) {
        if !circuitBreakers.contains(where: { $0 === circuitBreaker }) { circuitBreakers.append(circuitBreaker) }
    }

    /// Adds all of another request.
    mutating func add(_ other: ResourceRequest) {
        for entry in other.resources { add(entry.resource, within: entry.duration) }
        for circuitBreaker in other.circuitBreakers { add(circuitBreaker) }
    }

    /// The resource that is waited for the shortest time, and that time.
    var shortest: Limit? {
        resources.compactMap { entry in entry.duration.map { (entry.resource, $0) } }.min { $0.1 < $1.1 }
    }

    /// The required resource that has an identifier.
    func resource(_ id: ResourceID) -> OperationResource {
        guard let entry = resources.first(where: { $0.resource.id == id }) else {
            preconditionFailure("OperationKit: a resource is missing that was not required")
        }
        return entry.resource
    }
}

extension AsyncOperation {
    /// Makes the operation wait for a resource before its work begins: an ``ExclusiveAccess``, a ``ConcurrencyLimit`` or a
    /// ``RateLimit``.
    ///
    /// ```swift
    /// let database = ExclusiveAccess("database")
    /// let save = AsyncBlockOperation(name: "save") { finish in finish() }
    /// save.require(database, within: .seconds(5))
    /// ```
    ///
    /// Everything that an operation requires is requested together, after its conditions, and granted together or not at all.
    /// Meanwhile the operation is executing and keeps its place on its queue, but no thread waits. Operations with a higher
    /// `queuePriority` come first, and those with the same one in the order of their requests. A priority that is changed
    /// while the operation waits has no effect. An operation does not overtake another one that comes before it where both need the
    /// same resource, even if that one waits for something else, too. Only operations inside a composite that has a resource
    /// come before all others, and don't hold up each other: the composite ends after them.
    ///
    /// The operation has the resource until it is finished, however it ends: it is released in the moment in which `isFinished`
    /// becomes true, and the end is announced after that. A composite has it until its children have finished. One that ends
    /// before its `main()` releases it a moment earlier, and one that is cancelled while it waits ends immediately. An operation that is freed without an end gives its resources back soon, on another thread.
    ///
    /// An operation must not require what a composite around it has: it ends with
    /// ``ResourceError/heldByComposite(operation:resource:composite:)``. Two composites whose children need what the other one
    /// has wait for ever, as does an operation that awaits another one which waits for what it has. Pass a `duration` where
    /// that may happen.
    ///
    /// A resource that is required twice counts once. Require it before the start. Later that has no effect, which debug builds
    /// report (``MisuseReport/latePolicy(operation:policy:)``).
    ///
    /// - Parameters:
    ///   - resource: The resource.
    ///   - duration: How long the operation waits at most, by its ``clock``; `nil` for as long as it takes. After that it ends with
    ///     ``ResourceError/timedOut(operation:resource:duration:holders:)``, without its `main()`. With zero, or less, it
    ///     does not wait.
    public final func require(_ resource: OperationResource, within duration: Duration? = nil) {
        changeRequirements(named: resource.name) { $0.add(resource, within: duration) }
    }

    /// Makes the operation run only if a circuit breaker lets it through, and tells that how the operation ends.
    ///
    /// It is asked after the conditions, before anything is waited for, and again when everything that the operation requires
    /// was granted. If it lets nothing through, the operation ends immediately with ``CircuitOpenError``, without its `main()`.
    ///
    /// Require it before the start. Later that has no effect, which debug builds report
    /// (``MisuseReport/latePolicy(operation:policy:)``).
    ///
    /// - Parameter circuitBreaker: The circuit breaker.
    public final func require(_ circuitBreaker: CircuitBreaker) {
        changeRequirements(named: circuitBreaker.name) { $0.add(circuitBreaker) }
    }

    final func changeRequirements(named name: String, _ change: (inout ResourceRequest) -> Void) {
        setPolicy("the requirement “\(name)”") { gates in
            var request = (gates[.resources] as? ResourceLease)?.request ?? ResourceRequest()
            change(&request)
            return gates.set(ResourceLease(request))
        }
    }
}
