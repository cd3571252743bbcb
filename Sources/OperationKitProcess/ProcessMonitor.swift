#if os(macOS) || os(Linux)
import CProcessSupport
import Foundation
import OperationKit

/// Reads and writes the pipes of all programs that were started, and notices their ends, on one thread.
///
/// The thread runs no code of users, and frees nothing that is theirs, so nothing can hold it up. Dispatch is not used for descriptors: on
/// Linux it loses the end of a file, and crashes with many sources that live for a short time.
final class ProcessMonitor: @unchecked Sendable {
    static let shared = ProcessMonitor()

    private let lock = NSLock()
    /// What other threads have the thread do.
    private var commands: [@Sendable (ProcessMonitor) -> Void] = []
    /// Whether the thread will take the commands. Otherwise the next one has to wake it up.
    private var isAwake = false
    /// Changed on the thread, with the lock held.
    private var wakeUp = try? Pipe(ourEnd: 0, command: "")
    /// Used on the thread only.
    private var children: [ChildProcess] = []
    private var nextLookAtGroups = Duration.zero
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private let start = ContinuousClock.now

    private init() {
        // Foundation does not say that the system has no thread left.
        detachThread { [unowned self] in
            Thread.current.name = "OperationKit"
            run()
        }
    }

    // MARK: - Called on any thread

    /// Reads the pipes of a program, and reports its end to it.
    func watch(_ child: ChildProcess) { send { $0.children.append(child) } }

    /// Asks a program to end before this returns, and ends it after the grace period. Does nothing once it has ended.
    func terminate(_ child: ChildProcess, gracePeriod: Duration) {
        child.terminate(gracePeriod: gracePeriod)
        // It finds out by itself.
        send { _ in }
    }

    private func send(_ command: @escaping @Sendable (ProcessMonitor) -> Void) {
        lock.withLock {
            commands.append(command)
            guard !isAwake, let wakeUp else { return }
            var (byte, count) = (UInt8(0), 0)
            repeat { count = unsafe write(wakeUp.writing.number, &byte, 1) } while count < 0 && errno == EINTR
            isAwake = count == 1
        }
    }

    // MARK: - The thread

    private var now: Duration { start.duration(to: .now) }

    private func run() {
        ok_block_broken_pipe()
        while true {
            let ready = waitForEvents()
            for command in takeCommands() { command(self) }
            for event in ready { handle(event) }
            let now = now
            for child in children where child.exitDescriptor == nil && child.state.awaitsExit {
                lookForExit(of: child)
            }
            lookAtGroups()
            for child in children { child.advance(to: now) }
            children.removeAll { $0.isOver }
        }
    }

    private func takeCommands() -> [@Sendable (ProcessMonitor) -> Void] {
        lock.withLock {
            // If there were too many open files before. What comes after these commands writes to it.
            if wakeUp == nil { wakeUp = try? Pipe(ourEnd: 0, command: "") }
            isAwake = false
            return exchange(&commands, with: [])
        }
    }

    /// Notices that a program can be waited for. A descriptor that tells of the exit stays ready; macOS tells of it shortly before that.
    private func lookForExit(of child: ChildProcess) {
        if ok_has_exited(child.processID) != 0 { child.exitWasSeen() }
    }

    /// Notices which programs that were asked to end are alone in their groups.
    ///
    /// At most a fifth of the thread's time goes into that, so that it does not hold up what other programs write.
    private func lookAtGroups() {
        let began = now
        guard began >= nextLookAtGroups else { return }
        let waiting = children.filter(\.state.awaitsGroup)
        guard !waiting.isEmpty else { return }
        let groups = Self.groupsWithOthers(waiting.map(\.processID))
        defer { nextLookAtGroups = now + (now - began) * 4 }
        for child in waiting {
            // Where the system does not tell, the ends of the pipes do.
            let hasOthers = groups.map { $0.contains(child.processID) } ?? (child.state.openPipes > 0)
            if !hasOthers { child.state.groupEnded() }
        }
    }

    /// The groups of programs in which others run, too, or `nil` where the system does not tell.
    ///
    /// All are looked for in one pass: there may be many, and the system has to be asked for each process that exists.
    static func groupsWithOthers(_ groups: [pid_t]) -> Set<pid_t>? {
        let groups = groups.sorted()
        var found = [Bool](repeating: false, count: groups.count)
        guard unsafe ok_groups_with_others(groups, Int32(groups.count), &found) == 0 else { return nil }
        return Set(zip(groups, found).lazy.filter(\.1).map(\.0))
    }

    // MARK: - Descriptors

    private enum Event {
        case exit(ChildProcess)
        case writable(ChildProcess)
        case readable(ChildProcess, OutputPipe)
    }

    /// Waits until a descriptor is ready, a command comes, or a deadline is reached.
    private func waitForEvents() -> [Event] {
        var descriptors: [pollfd] = []
        var events: [Event] = []
        func add(_ descriptor: Descriptor?, _ interest: Int32, _ event: Event) {
            guard let descriptor else { return }
            descriptors.append(pollfd(fd: descriptor.number, events: Int16(interest), revents: 0))
            events.append(event)
        }
        let now = now
        for child in children {
            if child.state.awaitsExit { add(child.exitDescriptor, POLLIN, .exit(child)) }
            add(child.input?.descriptor, POLLOUT, .writable(child))
            let readsOnlyRest = child.state.readsOnlyRest(at: now)
            for pipe in child.outputs where !pipe.isHandlerBusy && (pipe.isBusy || !readsOnlyRest) {
                add(pipe.descriptor, POLLIN, .readable(child, pipe))
            }
        }
        descriptors.append(pollfd(fd: wakeUp?.reading.number ?? -1, events: Int16(POLLIN), revents: 0))
        let timeout = millisecondsToWait()
        let count = unsafe descriptors.withUnsafeMutableBufferPointer {
            unsafe poll($0.baseAddress, nfds_t($0.count), timeout)
        }
        if count < 0, errno != EINTR {
            // There are more than the limit, which was lowered. All are tried now and then: none of them blocks.
            usleep(10_000)
            for index in descriptors.indices { descriptors[index].revents = descriptors[index].events }
        }
        if descriptors.last?.revents != 0, let wakeUp {
            while unsafe buffer.withUnsafeMutableBytes({ unsafe read(wakeUp.reading.number, $0.baseAddress, $0.count) })
                > 0
            {}
        }
        return zip(descriptors, events).compactMap { $0.revents == 0 ? nil : $1 }
    }

    private func millisecondsToWait() -> Int32 {
        var wait = children.lazy.compactMap { $0.state.deadline(isBusy: $0.isBusy) }.min().map { $0 - now }
        // Where nothing tells of the exit, of the end of a group or of commands, these are asked for.
        let asks = children.contains { $0.exitDescriptor == nil && $0.state.awaitsExit || $0.state.awaitsGroup }
        if asks || wakeUp == nil {
            wait = min(wait ?? .milliseconds(10), .milliseconds(10))
        }
        guard let wait else { return -1 }
        // Rounded up, so that the deadline is reached afterward.
        return Int32(min(max(wait / .milliseconds(1), 0), 60_000).rounded(.up))
    }

    private func handle(_ event: Event) {
        switch event {
        case .exit(let child): lookForExit(of: child)
        case .writable(let child): child.writeInput()
        case .readable(let child, let pipe):
            let goesOn = pipe.read(into: &buffer) { self.send { _ in pipe.handlerReturned() } }
            if !goesOn { child.state.pipeClosed() }
        }
    }
}
#endif
