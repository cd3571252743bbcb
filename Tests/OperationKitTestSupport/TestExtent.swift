import Foundation

/// Whether memory that was freed is kept for a while, because a sanitizer looks for uses of it.
package let keepsFreedMemory = ["ASAN_OPTIONS", "TSAN_OPTIONS"].contains {
    ProcessInfo.processInfo.environment[$0] != nil
}

#if os(Linux)
/// Changes a limit of this process, for a test that has a process of its own.
///
/// - Returns: The limit that it had.
@discardableResult
package func setLimit(_ resource: __rlimit_resource, to count: rlim_t) -> rlim_t {
    let resource = __rlimit_resource_t(resource.rawValue)
    var limit = rlimit()
    unsafe getrlimit(resource, &limit)
    let previous = limit.rlim_cur
    limit.rlim_cur = count
    unsafe setrlimit(resource, &limit)
    return previous
}

/// The most memory that this process has had so far.
package func peakMegabytes() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
    return (line?.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0) / 1_024
}
#endif

/// How far a run of the tests goes where more always finds more: explorations, random programs, races and sizes.
///
/// The short extent is for every change: it has each kind of event in it, with fewer orders, programs and children. The
/// long one, `TEST_EXTENT=long`, tries every order, or every one within a bound where there are too many, reaches full
/// sizes, and prints how far it came.
package enum TestExtent: Sendable {
    case short, long

    /// The extent of this run.
    package static let current: TestExtent =
        ProcessInfo.processInfo.environment["TEST_EXTENT"] == "long" ? .long : .short

    /// Returns the value for the extent of this run.
    package static func choose<Value>(_ short: Value, long: Value) -> Value {
        switch current {
        case .short: short
        case .long: long
        }
    }

    /// Prints how far an exploration came. Short runs say nothing, so that failures are what is read.
    package static func report(_ text: @autoclosure () -> String) {
        if current == .long { print(text()) }
    }
}
