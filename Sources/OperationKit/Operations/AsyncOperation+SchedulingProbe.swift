import Foundation

extension AsyncOperation {
    /// `willChangeValue(forKey:)`, after a place of the scheduling probe.
    @inline(__always)
    final func willChange(_ key: String) {
        #if DEBUG
        SchedulingProbe.observer?.reached(.willChange(self, key))
        #endif
        willChangeValue(forKey: key)
    }

    /// `didChangeValue(forKey:)`, between two places of the scheduling probe.
    @inline(__always)
    final func didChange(_ key: String) {
        #if DEBUG
        SchedulingProbe.observer?.reached(.didChange(self, key))
        #endif
        didChangeValue(forKey: key)
        #if DEBUG
        SchedulingProbe.observer?.reached(.told)
        #endif
    }
}
