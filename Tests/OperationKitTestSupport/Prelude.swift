// What nearly every test needs besides this module.
@_exported public import Foundation
@_exported public import OperationKit
@_exported public import OperationKitTesting
@_exported public import Testing
