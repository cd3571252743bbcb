#if os(Linux)
import Foundation

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
#endif
