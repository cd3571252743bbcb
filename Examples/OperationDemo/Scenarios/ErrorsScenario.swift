import Foundation
import OperationKit

/// A compound in which children fail, one of them a compound itself, and the report that comes of it.
enum ErrorsScenario {
    static func play(on bench: Bench) -> Section.Findings {
        let backup = bench.compound(
            "backup",
            [
                bench.async("disk", 0.2, failure: PublishingError.diskFull(missingMegabytes: 12)),
                bench.async("mirror", 0.4),
            ])
        let publish = bench.compound(
            "publish",
            [
                bench.async("resize", 0.3),
                bench.sync("caption", 0.2, failure: PublishingError.tooLong(limit: 280)),
                backup,
                bench.async("upload", 0.3, failure: PublishingError.unreachable(host: "photos.example.org")),
            ])
        bench.enqueue(publish)
        return { report(publish.error) }
    }

    private static func report(_ error: (any Error)?) -> [String] {
        guard let error = error as? CompoundOperationError else { return [] }
        return ["As Swift error:"] + swiftReport(error, depth: 1)
            + ["  leafErrors: " + error.leafErrors.map(\.localizedDescription).joined(separator: " ")]
            + ["As NSError:"] + foundationReport(error.nsError, depth: 1)
    }

    private static func swiftReport(_ error: CompoundOperationError, depth: Int) -> [String] {
        let margin = String(repeating: "  ", count: depth)
        switch error {
        case .suboperationFailure(let name, let errors):
            return ["\(margin)suboperationFailure of “\(name)”: \(counted(errors.count, "error"))"]
                + errors.flatMap { suboperation in
                    let line = "\(margin)  child \(suboperation.index), “\(suboperation.name)”: "
                    guard let nested = suboperation.error as? CompoundOperationError else {
                        return [line + suboperation.error.localizedDescription]
                    }
                    return [line + "a compound"] + swiftReport(nested, depth: depth + 2)
                }
        case .cancelled(let name, let errors, _):
            return ["\(margin)cancelled: “\(name)”, \(counted(errors.count, "error"))"]
        case .dependencyCycle(let name, let path):
            return ["\(margin)dependencyCycle in “\(name)”: \(path.joined(separator: " → "))"]
        }
    }

    private static func foundationReport(_ error: NSError, depth: Int) -> [String] {
        let margin = String(repeating: "  ", count: depth)
        let underlying = error.userInfo[CompoundOperationError.underlyingErrorsKey] as? [NSError] ?? []
        return ["\(margin)\(error.domain), code \(error.code): \(error.localizedDescription)"]
            + underlying.flatMap { foundationReport($0, depth: depth + 1) }
    }
}

/// What can go wrong when a photo is published.
private enum PublishingError: Error, LocalizedError, CustomNSError, CustomStringConvertible {
    case diskFull(missingMegabytes: Int)
    case tooLong(limit: Int)
    case unreachable(host: String)

    static var errorDomain: String { "OperationDemo.PublishingError" }

    var errorCode: Int {
        switch self {
        case .diskFull: 1
        case .tooLong: 2
        case .unreachable: 3
        }
    }

    var errorDescription: String? { description }

    var description: String {
        switch self {
        case .diskFull(let megabytes): "The disk is full: \(megabytes) MB are missing."
        case .tooLong(let limit): "The caption has more than \(limit) characters."
        case .unreachable(let host): "The host \(host) cannot be reached."
        }
    }

    var errorUserInfo: [String: Any] {
        [NSLocalizedDescriptionKey: errorDescription ?? ""]
    }
}
