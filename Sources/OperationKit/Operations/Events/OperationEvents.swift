/// What happens to an operation, and to all that is inside it, as an asynchronous sequence that ends with the operation.
///
/// ```swift
/// let sync = CompoundOperation(name: "sync", operations: [ThrowingBlockOperation { /* … */ }])
/// let events = sync.events
/// OperationQueue().addOperation(sync)
/// for await event in events {
///     print(event)
/// }
/// print("sync has finished")
/// ```
///
/// The events of each operation come in the order in which they have happened.
/// The last one is the end of the operation itself, and then the sequence ends. That of an operation that has finished is empty; that of
/// one which is released without having been started ends then.
///
/// Events are kept until they are read. If there are too many, the oldest are dropped, never the last one, and
/// ``OperationEvent/droppedCount`` of the next one that is read says how many. The sequence may be iterated once. To read
/// the events in several places, get a sequence for each. Cancelling the task that reads ends the sequence, after the events that
/// are kept.
///
/// The sequence keeps the operation alive only as long as events of it are delivered.
public struct OperationEvents: AsyncSequence, Sendable {
    /// An event of the operation, or of one inside it.
    public typealias Element = OperationEvent
    /// Reading the events does not fail.
    public typealias Failure = Never

    /// Events with their numbers, from 0. Some are missing if the oldest ones were dropped.
    fileprivate typealias Stream = AsyncStream<(number: Int, event: OperationEvent)>

    private let stream: Stream

    init(of operation: AsyncOperation, bufferingNewest limit: Int) {
        precondition(
            limit > 0,
            "OperationKit: a buffer for the events of “\(operation.displayName)” needs room for one, not for \(limit)")
        let (stream, continuation) = Stream.makeStream(bufferingPolicy: .bufferingNewest(limit))
        let buffer = EventBuffer(operation, continuation)
        self.stream = stream
        // The release of the buffer ends the sequence, which is now for an operation that has finished.
        operation.addObserver(buffer)
        let reference = Reference(WeakReference(buffer))
        continuation.onTermination = { termination in
            // The end of the operation removes it anyway.
            guard case .cancelled = termination else { return }
            // Not inside the call, which may come from the end of the operation, or with a lock of the runtime's held. Nothing is
            // looked up there: what it returned could be the last reference.
            DedicatedThreads.callbacks.performAsync {
                if let buffer = reference.value.object { buffer.reference.object?.removeObserver(buffer) }
            }
        }
    }

    /// Returns the iterator. Iterate the sequence once.
    public func makeAsyncIterator() -> Iterator {
        Iterator(events: stream.makeAsyncIterator())
    }

    /// Reads the events.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var events: Stream.Iterator
        fileprivate var nextNumber = 0

        /// Returns the next event, and waits for it.
        ///
        /// - Returns: The event; `nil` after the end of the operation, or after what is kept if the task is cancelled.
        public mutating func next() async -> OperationEvent? {
            guard case (let number, var event)? = await events.next() else { return nil }
            event.droppedCount = number - exchange(&nextNumber, with: number + 1)
            return event
        }
    }
}

extension AsyncOperation {
    /// What happens to the operation from now on, and to all that is inside it, up to its end.
    ///
    /// Each read is a sequence of its own, which keeps the 1,000 newest events until they are read. Get it before you start
    /// the operation. May be read on any thread, at any time. What is inside the operation may end without an event in it, if another
    /// thread is still inside an observer then, to which the end is left.
    public final var events: OperationEvents { events(bufferingNewest: 1000) }

    /// What happens to the operation from now on, and to all that is inside it, up to its end.
    ///
    /// - Parameter limit: How many events are kept that have not been read, at least one, or it traps. The oldest are dropped.
    /// - Returns: The events.
    public final func events(bufferingNewest limit: Int) -> OperationEvents {
        OperationEvents(of: self, bufferingNewest: limit)
    }
}

/// Passes the events on.
private final class EventBuffer: OperationObserver {
    private let operation: OperationID
    /// The operation that it observes, to be left when the reader is gone.
    let reference: WeakReference<AsyncOperation>
    private let continuation: OperationEvents.Stream.Continuation
    /// Events that have not been added, the number of the next one, and whether a thread is adding some. Only one does, so that the end
    /// is the last one.
    private let waiting = Locked((events: [OperationEvents.Stream.Element](), nextNumber: 0, isBeingEmptied: false))

    init(_ operation: AsyncOperation, _ continuation: OperationEvents.Stream.Continuation) {
        self.operation = operation.observationID
        reference = WeakReference(operation)
        self.continuation = continuation
    }

    /// The operation was released, or has finished.
    deinit {
        continuation.finish()
    }

    func operation(_ operation: AsyncOperation, emitted event: OperationEvent) {
        var isNext = waiting.withLock {
            $0.events.append(($0.nextNumber, event))
            $0.nextNumber += 1
            return !exchange(&$0.isBeingEmptied, with: true)
        }
        while isNext {
            let events = waiting.withLock {
                $0.isBeingEmptied = !$0.events.isEmpty
                return exchange(&$0.events, with: [])
            }
            isNext = !events.isEmpty
            for entry in events {
                continuation.yield(entry)
                // Nothing is added after that. The release would end the sequence, too, but later.
                if entry.event.operation == self.operation, case .finished = entry.event.kind { continuation.finish() }
            }
        }
    }
}
