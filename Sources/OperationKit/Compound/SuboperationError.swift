public import Foundation

/// The failure of one child of a compound.
public struct SuboperationError: Error {
    /// The name of the child, or its type and index.
    public let name: String
    /// The place of the child in the order in which children were added, from 0.
    public let index: Int
    /// The error that the child ended with.
    public let error: any Error
    /// How many children the compound had, where known.
    public let siblingCount: Int?

    /// Describes the failure of a child.
    ///
    /// - Parameters:
    ///   - name: The name of the child.
    ///   - index: Its place among the children, from 0.
    ///   - error: What it failed with.
    ///   - siblingCount: How many children there were, itself included.
    public init(name: String, index: Int, error: any Error, siblingCount: Int? = nil) {
        self.name = name
        self.index = index
        self.error = error
        self.siblingCount = siblingCount
    }
}

extension SuboperationError: LocalizedError, CustomNSError {
    /// `OperationKit.SuboperationError`
    public static var errorDomain: String { "OperationKit.SuboperationError" }

    /// Always 1.
    public var errorCode: Int { 1 }

    /// The name of the child, and the description of its error.
    public var errorDescription: String? {
        "“\(name)” failed: \(error.localizedDescription)"
    }

    /// The localized description, and the child's error as the underlying one.
    public var errorUserInfo: [String: Any] {
        var userInfo = descriptionUserInfo
        userInfo[NSUnderlyingErrorKey] = error.asNSError
        return userInfo
    }
}
