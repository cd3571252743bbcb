import Foundation

/// A queue of the library, which knows what is on it: no search has to look there for an operation.
class PrivateQueue: OperationQueue, @unchecked Sendable {}
