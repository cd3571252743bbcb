/// What is still to be done for the composites around an operation that has changed, and for the operations inside it.
///
/// Composites may be nested to any depth, so one that cancels what is inside of it, or that ends because the last of its
/// children has, leaves this in a list instead of making nested calls, which would overflow the stack.
struct Trampoline {
    typealias Task = (inout Trampoline) -> Void

    private var tasks: [Task] = []

    /// Adds a task that is performed before those that are there.
    mutating func add(_ task: @escaping Task) {
        tasks.append(task)
    }

    /// Calls a closure, and performs what it adds, and what that adds, before returning. Callers hold no lock.
    static func run<Value>(_ body: (inout Trampoline) -> Value) -> Value {
        var list = Trampoline()
        let value = body(&list)
        while let task = list.tasks.popLast() { task(&list) }
        return value
    }
}
