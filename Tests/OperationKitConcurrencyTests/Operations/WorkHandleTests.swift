import OperationKitTestSupport

@testable import OperationKit

@Suite("Cancellation seen by closures", .hangGuard) struct WorkHandleTests {
    /// What a closure is handed, whichever kind of operation it belongs to.
    struct Handle: Sendable {
        let isCancelled: @Sendable () -> Bool
        let checkCancellation: @Sendable () throws -> Void
        let onCancel: @Sendable (@escaping @Sendable () -> Void) -> Void

        init(_ work: WorkHandle) {
            isCancelled = { work.isCancelled }
            checkCancellation = work.checkCancellation
            onCancel = work.onCancel
        }

        init<Output>(_ finish: FinishHandle<Output>) {
            isCancelled = { finish.isCancelled }
            checkCancellation = finish.checkCancellation
            onCancel = finish.onCancel
        }
    }

    enum Kind: CaseIterable {
        case throwing, typed, block, typedBlock

        func make(_ body: @escaping @Sendable (Handle) throws -> Void) -> AsyncOperation {
            switch self {
            case .throwing: ThrowingBlockOperation { work in try body(Handle(work)) }
            case .typed: IOBlockOperation<Void, Void>.observing { _, work in try body(Handle(work)) }
            case .block:
                AsyncBlockOperation { finish in
                    do { try body(Handle(finish)) } catch { return finish(error) }
                    finish()
                }
            case .typedBlock:
                IOBlockOperation<Void, Void>.finishing { _, finish in
                    do { try body(Handle(finish)) } catch { return finish(error) }
                    finish(with: ())
                }
            }
        }
    }

    @Test(
        "A closure on the stack sees the cancellation, and its handlers run once each, in order, on the cancelling thread",
        arguments: Kind.allCases)
    func cancelledOnTheStack(kind: Kind) async {
        let (log, work) = (EventLog(), HeldWork())
        let canceller = Shared<ObjectIdentifier?>(nil)
        let operation = kind.make { handle in
            log.add("cancelled: \(handle.isCancelled())")
            for number in 1...3 {
                handle.onCancel { log.add("handler \(number), \(ObjectIdentifier(Thread.current) == canceller.value)") }
            }
            try handle.checkCancellation()
            work()
            log.add("cancelled: \(handle.isCancelled())")
            try handle.checkCancellation()
            log.add("not reached")
        }
        async let ended: Void = Start.byHand(operation)
        await work.begun.opened()
        await onThread {
            canceller.value = ObjectIdentifier(Thread.current)
            operation.cancel()
            operation.cancel()
            log.add("cancel returns")
        }
        work.mayEnd.open()
        await ended
        #expect(
            log.events == [
                "cancelled: false", "handler 1, true", "handler 2, true", "handler 3, true", "cancel returns",
                "cancelled: true",
            ])
        #expect(text(operation.error) == "cancelled")
    }

    @Test("A handler that is registered after the cancellation is called immediately", arguments: Kind.allCases)
    func registeredLate(kind: Kind) async {
        let log = EventLog()
        let holder = Shared<AsyncOperation?>(nil)
        let operation = kind.make { handle in
            holder.value?.cancel()
            handle.onCancel {
                log.add("outer")
                handle.onCancel { log.add("inner") }
            }
            log.add("registered")
        }
        holder.value = operation
        await Start.byHand(operation)
        holder.value = nil
        #expect(log.events == ["outer", "inner", "registered"])
        #expect(operation.isFinished && operation.error == nil)
    }

    @Test("A handler does not overtake those that the thread which cancels has not come to", arguments: Kind.allCases)
    func registeredDuringHandler(kind: Kind) async {
        let log = EventLog()
        let (begun, isInHandler, mayReturn) = (Gate(), Gate(), Gate())
        let operation = kind.make { handle in
            handle.onCancel {
                log.add("1")
                isInHandler.open()
                mayReturn.pass()
            }
            handle.onCancel { log.add("2") }
            begun.open()
            isInHandler.pass()
            handle.onCancel { log.add("3") }
            log.add("registered")
            mayReturn.open()
        }
        async let ended: Void = Start.byHand(operation)
        await begun.opened()
        await onThread { operation.cancel() }
        await ended
        #expect(log.events == ["1", "2", "3", "registered"])
    }

    #if DEBUG
    @Test(
        "A handler that is registered while another thread cancels is called immediately, and so are those before",
        arguments: Kind.allCases)
    func registeredMeanwhile(kind: Kind) async {
        for place in 0..<Interruption.bound {
            let (work, kept, log) = (HeldWork(), Shared<Handle?>(nil), EventLog())
            let operation = kind.make { handle in
                handle.onCancel { log.add("first") }
                kept.value = handle
                work()
            }
            async let ended: Void = Start.byHand(operation)
            await work.begun.opened()
            let isReached = await onThread {
                let interruption = Interruption(at: place) {
                    guard operation.isCancelled, let handle = kept.value else { return }
                    #expect(answersOnAnotherThread { handle.onCancel { log.add("second") } })
                    #expect(log.count(of: "second") == 1, "place \(place)")
                }
                SchedulingProbe.observed(by: interruption) { operation.cancel() }
                return interruption.hasRun
            }
            work.mayEnd.open()
            await ended
            kept.value = nil
            #expect(log.count(of: "first") == 1, "place \(place)")
            if !isReached { return }
        }
    }
    #endif

    @Test(
        "A handler is called if the operation is cancelled before its end, when handlers are released, and none are taken any more",
        arguments: Kind.allCases, [false, true])
    func afterTheEnd(kind: Kind, isCancelled: Bool) async {
        let (tracker, log, kept) = (LeakTracker(), EventLog(), Shared<Handle?>(nil))
        let operation: AsyncOperation
        do {
            let (token, holder) = (tracker.token("handler"), Shared<AsyncOperation?>(nil))
            operation = kind.make { [token] handle in
                handle.onCancel { [token] in
                    token.use()
                    log.add("handler")
                }
                kept.value = handle
                if isCancelled { holder.value?.cancel() }
            }
            holder.value = operation
            await Start.byHand(operation)
            holder.value = nil
        }
        await tracker.expectAllReleased()
        operation.cancel()
        kept.value?.onCancel { log.add("late handler") }
        #expect(operation.isCancelled == isCancelled && log.events == (isCancelled ? ["handler"] : []))
        kept.value = nil
    }

    @Test(
        "No lock is held while a handler runs: it may wait for another thread that uses the operation",
        arguments: Kind.allCases)
    func handlersUseTheOperation(kind: Kind) async {
        let (log, work) = (EventLog(), HeldWork())
        let holder = Shared<AsyncOperation?>(nil)
        let operation = kind.make { handle in
            handle.onCancel {
                let used = Gate()
                Thread {
                    guard let operation = holder.value else { return }
                    handle.onCancel { log.add("registered in a handler") }
                    operation.cancel()
                    log.add("cancelled: \(operation.isCancelled), finished: \(operation.isFinished)")
                    used.open()
                }.start()
                used.pass()
            }
            work()
        }
        holder.value = operation
        async let ended: Void = Start.byHand(operation)
        await work.begun.opened()
        await onThread { operation.cancel() }
        work.mayEnd.open()
        await ended
        holder.value = nil
        #expect(log.events == ["registered in a handler", "cancelled: true, finished: false"])
    }
}
