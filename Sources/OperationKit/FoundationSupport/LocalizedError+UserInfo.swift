import Foundation

extension LocalizedError {
    /// What the `NSError` of every error of the library has at least: its description.
    var descriptionUserInfo: [String: Any] {
        var userInfo: [String: Any] = [:]
        userInfo[NSLocalizedDescriptionKey] = errorDescription
        return userInfo
    }
}
