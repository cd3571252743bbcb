public import Foundation

/// Why a ``Waterfall`` did not run.
public enum WaterfallError: Error, Equatable {
    /// The waterfall is part of another operation, and cannot grow. Code 1.
    case alreadyUsed(waterfall: String)
    /// The waterfall has become part of a longer one, which is to be started instead. Code 2.
    case consumed(waterfall: String)
    /// The waterfall had been started before a job was added to it. Code 3.
    case alreadyStarted(waterfall: String)
}

extension WaterfallError: LocalizedError, CustomNSError {
    /// `OperationKit.WaterfallError`
    public static var errorDomain: String { "OperationKit.WaterfallError" }

    /// The code documented at each case.
    public var errorCode: Int {
        switch self {
        case .alreadyUsed: 1
        case .consumed: 2
        case .alreadyStarted: 3
        }
    }

    /// What happened, to which waterfall, and what to do about it.
    public var errorDescription: String? {
        switch self {
        case .alreadyUsed(let waterfall):
            "“\(waterfall)” is part of another operation already, and takes no more jobs. Add all jobs before."
        case .consumed(let waterfall):
            "“\(waterfall)” did not run, because it has become part of a longer waterfall. Start what then() returned."
        case .alreadyStarted(let waterfall):
            "“\(waterfall)” had been started before a job was added to it. Add all jobs before the start."
        }
    }

    /// The localized description.
    public var errorUserInfo: [String: Any] {
        descriptionUserInfo
    }
}
