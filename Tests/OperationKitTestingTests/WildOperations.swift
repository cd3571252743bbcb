import Foundation

/// What programs have written for years: no lock, an end wherever one seems right, and none after a cancellation.
final class HandWritten: Operation, @unchecked Sendable {
    private var state = 0

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { state == 1 }
    override var isFinished: Bool { state == 2 }

    override func start() {
        willChangeValue(forKey: "isExecuting")
        state = 1
        didChangeValue(forKey: "isExecuting")
        main()
    }

    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) {
            if self.isCancelled { return }
            self.finish()
        }
    }

    private func finish() {
        willChangeValue(forKey: "isFinished")
        state = 2
        didChangeValue(forKey: "isFinished")
    }
}

/// The `AsyncOperation` of blogs: each flag behind a queue, but no step that changes both, and no end that is the first.
class BlogOperation: Operation, @unchecked Sendable {
    private let flags = DispatchQueue(label: "flags", attributes: .concurrent)
    private var executing = false
    private var finished = false

    override var isAsynchronous: Bool { true }

    override private(set) var isExecuting: Bool {
        get { flags.sync { executing } }
        set {
            willChangeValue(forKey: "isExecuting")
            flags.sync(flags: .barrier) { executing = newValue }
            didChangeValue(forKey: "isExecuting")
        }
    }

    override private(set) var isFinished: Bool {
        get { flags.sync { finished } }
        set {
            willChangeValue(forKey: "isFinished")
            flags.sync(flags: .barrier) { finished = newValue }
            didChangeValue(forKey: "isFinished")
        }
    }

    override func start() {
        guard !isCancelled else { return finish() }
        isFinished = false
        isExecuting = true
        main()
    }

    override func main() { DispatchQueue.global().asyncAfter(deadline: .now() + 0.005) { self.finish() } }

    func finish() {
        isExecuting = false
        isFinished = true
    }
}

/// The blog's class with a `cancel()` that ends it, whether it was started or not.
final class BlogOperationEndingInCancel: BlogOperation, @unchecked Sendable {
    override func cancel() {
        super.cancel()
        finish()
    }
}

/// The blog's class with work that is stopped, and then has no end.
final class BlogOperationWithoutEnd: BlogOperation, @unchecked Sendable {
    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.03) { if !self.isCancelled { self.finish() } }
    }
}

/// The blog's class with a `cancel()` of its own, which it announces to no observer.
final class BlogOperationNotMarking: BlogOperation, @unchecked Sendable {
    override func cancel() {
        if isExecuting { finish() }
    }
}

/// The blog's class that ends between its look at `isCancelled` and its start: it executes after its end, and `start()` takes the end back.
final class BlogOperationRacing: BlogOperation, @unchecked Sendable {
    override var isCancelled: Bool {
        let isCancelled = super.isCancelled
        // What a busy machine does now and then.
        Thread.sleep(forTimeInterval: 0.004)
        return isCancelled
    }

    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.002) { if !self.isCancelled { self.finish() } }
    }

    override func cancel() {
        super.cancel()
        if isExecuting { finish() }
    }
}
