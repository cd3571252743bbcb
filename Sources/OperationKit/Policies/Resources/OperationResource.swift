public import Foundation

/// Something that only so many operations may use at the same time, or in a certain time: an ``ExclusiveAccess``, a
/// ``ConcurrencyLimit`` or a ``RateLimit``.
///
/// Operations say which resources they need with ``AsyncOperation/require(_:within:)``. A resource is known by the object, not by
/// its name: two objects are two resources, even if they have the same name. So keep it where all that need it find it, as in
/// a `static let`. The class has no other subclasses than these.
public class OperationResource: @unchecked Sendable {
    /// The name of the resource, for errors and descriptions.
    public final let name: String
    /// How many operations may wait for the resource. While it has a free place and none waits for it, one more may wait for
    /// something else, too.
    public final let maximumWaiting: Int

    final let id: ResourceID
    /// What an operation waits for, as the end of a phrase.
    final let title: String
    /// Called when nothing uses the resource any more. Set before it can be used.
    final var released: (@Sendable () -> Void)?

    init(_ kind: String, name: String, title: String, limit: Int, maximumWaiting: Int, isRate: Bool = false) {
        precondition(limit > 0, "OperationKit: the \(kind) “\(name)” would let \(limit) operations through")
        precondition(maximumWaiting >= 0, "OperationKit: at most \(maximumWaiting) operations could wait for “\(name)”")
        self.name = name
        self.title = title
        self.maximumWaiting = maximumWaiting
        id = ResourcePool.shared.withMachine {
            $0.resourceAdded(limit: limit, maximumWaiting: maximumWaiting, isRate: isRate)
        }
    }

    deinit {
        ResourcePool.shared.withMachine { $0.resourceRemoved(id) }
        released?()
    }

    /// How many operations wait for the resource at the moment. For diagnostics: the number may be another one by the time it is
    /// looked at.
    public final var waitingCount: Int { ResourcePool.shared.withMachine { $0.waitingCount(of: id) } }
}

/// Lets one operation work at a time.
///
/// ```swift
/// enum Storage {
///     static let database = ExclusiveAccess("database")
/// }
///
/// let queue = OperationQueue()
/// for number in 1...10 {
///     let save = AsyncBlockOperation(name: "save \(number)") { finish in finish() }
///     save.require(Storage.database)
///     queue.addOperation(save)
/// }
/// ```
///
/// Of all operations that require it, on whatever queue and in whatever compound, at most one is between the beginning of its
/// ``AsyncOperation/main()`` and its end. See ``AsyncOperation/require(_:within:)`` for the order of those that wait.
public final class ExclusiveAccess: OperationResource, @unchecked Sendable {
    /// Creates an exclusive access.
    ///
    /// - Parameters:
    ///   - name: Its name, for errors and descriptions. Two with the same name have nothing to do with each other.
    ///   - maximumWaiting: How many operations may wait for it. One more ends with
    ///     ``ResourceError/tooManyWaiting(operation:resource:maximum:)``. Traps if it is negative.
    public init(_ name: String, maximumWaiting: Int = .max) {
        super.init(
            "exclusive access", name: name, title: "exclusive access to “\(name)”", limit: 1,
            maximumWaiting: maximumWaiting)
    }
}

/// Lets so many operations work at the same time.
///
/// ```swift
/// enum Hosts {
///     static let example = ConcurrencyLimit("example.com", 4)
/// }
///
/// let queue = OperationQueue()
/// for page in 1...100 {
///     let request = TaskOperation(name: "page \(page)") { page }
///     request.require(Hosts.example, within: .seconds(30))
///     queue.addOperation(request)
/// }
/// ```
///
/// Of all operations that require it, on whatever queue and in whatever compound, at most so many are between the beginning of their
/// ``AsyncOperation/main()`` and their end. See ``AsyncOperation/require(_:within:)`` for the order of those that wait.
public final class ConcurrencyLimit: OperationResource, @unchecked Sendable {
    /// How many operations may work at the same time.
    public let limit: Int

    /// Creates a limit.
    ///
    /// - Parameters:
    ///   - name: Its name, for errors and descriptions. Two with the same name have nothing to do with each other.
    ///   - limit: How many operations may work at the same time. Traps if it is less than 1.
    ///   - maximumWaiting: How many operations may wait. One more ends with
    ///     ``ResourceError/tooManyWaiting(operation:resource:maximum:)``. Traps if it is negative.
    public init(_ name: String, _ limit: Int, maximumWaiting: Int = .max) {
        self.limit = limit
        let title = limit == 1 ? "the place of “\(name)”" : "one of \(limit) places of “\(name)”"
        super.init("concurrency limit", name: name, title: title, limit: limit, maximumWaiting: maximumWaiting)
    }
}

/// Why an operation did not get the resources that it requires, such as exclusive access.
public enum ResourceError: Equatable, LocalizedError, CustomNSError, ReportedError {
    /// As many operations wait for the resource already as may. Code 1.
    case tooManyWaiting(operation: String, resource: String, maximum: Int)
    /// A composite around the operation, which ends after it, has the resource. Code 2.
    case heldByComposite(operation: String, resource: String, composite: String)
    /// The resource did not become available in time. `holders` are the names of operations that held it: of three at
    /// most, and of none if it is a ``RateLimit``. Code 3.
    case timedOut(operation: String, resource: String, duration: Duration, holders: [String])

    package var numericCode: Int {
        switch self {
        case .tooManyWaiting: 1
        case .heldByComposite: 2
        case .timedOut: 3
        }
    }

    package func text(depth: Int) -> String {
        switch self {
        case .tooManyWaiting(let operation, let resource, let maximum):
            "The operation “\(operation)” did not run, because " + reason(resource: resource, maximum: maximum)
        case .heldByComposite(let operation, let resource, let composite):
            "The operation “\(operation)” did not run, because “\(composite)” around it has “\(resource)” until it has ended."
        case .timedOut(let operation, let resource, let duration, let holders):
            "The operation “\(operation)” did not run, because “\(resource)” was not available within \(duration)"
                + (holders.isEmpty ? "." : ": it is held by \(list(holders)).")
        }
    }

    private func reason(resource: String, maximum: Int) -> String {
        switch maximum {
        case 0: "“\(resource)” was not available, and no operation may wait for it."
        case 1: "1 operation waits for “\(resource)” already, and no more may."
        default: "\(maximum) operations wait for “\(resource)” already, and no more may."
        }
    }
}

/// Names, as they are listed in a sentence.
func list(_ names: [String]) -> String {
    let names = names.map { "“\($0)”" }
    guard let last = names.last, names.count > 1 else { return names.joined() }
    return names.dropLast().joined(separator: ", ") + " and " + last
}

/// The resources and circuit breakers that one operation requires, as a value.
struct ResourceRequest {
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
    var shortest: (resource: OperationResource, duration: Duration)? {
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
    /// `queuePriority` come first, and those with the same one in the order of their requests. The request is made when the
    /// operation is started, and a queue with several places starts operations in any order. A priority that is changed while the
    /// operation waits has no effect. An operation does not overtake another one that comes before it where both need the
    /// same resource, even if that one waits for something else, too. Only operations inside a composite that has a resource
    /// come before all others, and don't hold up each other: the composite ends after them.
    ///
    /// The operation has the resource until it is finished, however it ends: it is released in the moment in which `isFinished`
    /// becomes true, and the end is announced after that. A composite has it until its children have finished. One that ends
    /// before its `main()` releases it a moment earlier, and one that is cancelled while it waits ends immediately,
    /// a retried closure soon after that. An operation that is freed without an end gives its resources back soon, on another thread.
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
    ///     does not wait, and ends with ``ResourceError/tooManyWaiting(operation:resource:maximum:)`` where no other may wait.
    public final func require(_ resource: OperationResource, within duration: Duration? = nil) {
        changeRequest(named: resource.name) { $0.add(resource, within: duration) }
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
        changeRequest(named: circuitBreaker.name) { $0.add(circuitBreaker) }
    }

    func changeRequest(named name: String, _ change: (inout ResourceRequest) -> Void) {
        setPolicy("the requirement “\(name)”") { gates in
            gates.replace { (current: ResourceLease?) in
                var request = current?.request ?? ResourceRequest()
                change(&request)
                return ResourceLease(request)
            }
        }
    }
}
