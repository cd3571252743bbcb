import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transfer whose answer is written to a file. What changes belongs to the queue of the session.
final class FileTransfer: TransferHandler, @unchecked Sendable {
    private let request: URLRequest
    private let operation: DownloadTaskOperation
    private let file: PartialFile
    private var response: HTTPResponse?
    /// Of an answer that is an error.
    private var errorBody = Data()
    private var failure: (any Error)?
    /// Whether the part that is there does not fit what the server has.
    private var startsOver = false
    private var hasStartedOver = false
    /// Whether the part that is there is all that the server has.
    private var isWhole = false
    /// Whether the rest of a part is asked for.
    private var isResuming = false
    /// Whether the answer is a part, of which others may follow.
    private var isPart = false
    /// How much of the answer has come.
    private var received: Int64 = 0
    /// How much the answer has; negative if that is not known.
    private var expected: Int64 = -1
    /// How long the file will be when it is complete; negative if that is not known.
    private var whole: Int64 = -1
    /// What an answer with a part has said of that.
    private var total: Int64?

    init(_ request: URLRequest, for operation: DownloadTaskOperation, _ file: PartialFile) {
        self.request = request
        self.operation = operation
        self.file = file
    }

    func makeTask(in session: URLSession, redirectedTo redirection: URLRequest?) -> URLSessionTask {
        var request = redirection ?? request
        // Ranges are those of what is sent, so it must not be compressed.
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        (response, isResuming) = (nil, false)
        if canResume, file.length > 0, let validator = file.validator {
            isResuming = true
            request.setValue("bytes=\(file.length)-", forHTTPHeaderField: "Range")
            request.setValue(validator, forHTTPHeaderField: "If-Range")
        }
        return session.task(for: request)
    }

    /// Whether the request itself asks for a part. That is all of its answer, and another part can't follow it.
    private var wantsRange: Bool { request.value(forHTTPHeaderField: "Range") != nil }

    /// Whether the rest can be asked for: RFC 9110 defines that for no other method, in 14.2.
    private var canResume: Bool { !wantsRange && request.httpMethod == "GET" }

    /// Whether the body could be that of a file: not that of “not modified”, of other redirections, of “no content” and
    /// “reset content”, and after a HEAD.
    private func hasFile(_ response: HTTPResponse) -> Bool {
        request.httpMethod != "HEAD" && !(300..<400).contains(response.status) && ![204, 205].contains(response.status)
    }

    func received(_ response: URLResponse) -> Bool {
        let response = HTTPResponse(response)
        self.response = response
        (received, isPart) = (0, false)
        // The length of what is sent, which the session decodes.
        expected = response.isEncoded ? -1 : response.urlResponse.expectedContentLength
        whole = expected
        do {
            switch response.status {
            // Some servers answer to `Range`, but not with the status of that.
            case 206 where !wantsRange && hasFile(response),
                200 where isResuming && response.value(forHTTPHeaderField: "Content-Range") != nil:
                try beginPart(response)
            case 416 where isResuming:
                let range = response.value(forHTTPHeaderField: "Content-Range")
                isWhole = range == "bytes */\(file.length)" && response.fits(file.validator) && hasFile(response)
                startsOver = !isWhole
            case _ where operation.accepts(response) && hasFile(response):
                try file.begin(validator: canResume ? response.validator : nil)
            default: break
            }
        } catch {
            failure = error
        }
        return failure == nil && !startsOver && !isWhole
    }

    /// The server sends a part, with or without having been asked for the rest.
    private func beginPart(_ response: HTTPResponse) throws {
        isPart = true
        let range = response.isEncoded ? nil : ContentRange(response.value(forHTTPHeaderField: "Content-Range") ?? "")
        if isResuming {
            // Some servers answer to `Range`, but not to `If-Range`.
            let isSame = response.fits(file.validator)
            startsOver = !isSame || range?.first != file.length || expected >= 0 && expected != range?.count
        } else {
            guard range?.first == 0 else {
                throw TransferError(.cannotParseResponse, "a part came that was not asked for.", of: request)
            }
            try file.begin(validator: canResume ? response.validator : nil)
        }
        guard let range else { return }
        expected = range.count
        if !isResuming || range.total != nil { total = range.total }
        // Without a total, the rest that was asked for ends the file. A part that was not asked for is followed by others.
        whole = total ?? (isResuming ? range.last + 1 : .max)
    }

    func received(_ data: Data) -> Bool {
        guard let response else { return false }
        guard hasFile(response) else { return true }
        guard operation.accepts(response) else {
            errorBody.append(data.prefix(HTTPError.longestBody - errorBody.count))
            return errorBody.count < HTTPError.longestBody
        }
        received += Int64(data.count)
        do {
            if expected >= 0, received > expected {
                throw TransferError(.cannotParseResponse, "more came than its header says.", of: request)
            }
            try file.append(data)
        } catch {
            failure = error
            return false
        }
        if whole < .max { operation.progressed(to: file.length, of: whole) }
        return true
    }

    func sent(_ count: Int64, of total: Int64) {}

    func completed(with error: (any Error)?) {
        // Once: a file that changes all the time is none.
        if error == nil, startsOver, !hasStartedOver {
            (startsOver, hasStartedOver, total) = (false, true, nil)
            do {
                try file.begin(validator: nil)
                return RequestSession.shared.begin(self)
            } catch {
                failure = error
            }
        }
        if error == nil, wantsRest { return RequestSession.shared.begin(self) }
        do {
            if let error = failure { throw error }
            if let error { throw TransferError(error, of: request) }
            guard let response else { throw TransferError(URLError(.badServerResponse), of: request) }
            if startsOver {
                let message = "the file changes while it is loaded, or its parts do not fit."
                throw TransferError(.badServerResponse, message, of: request)
            }
            guard isWhole || operation.accepts(response) else { throw HTTPError(request, response, errorBody) }
            guard hasFile(response) else {
                // What was thrown away leaves nothing.
                file.stop()
                return operation.end(with: .success(DownloadOutput(file: operation.destination, response: response)))
            }
            if !isWhole, expected >= 0, file.length != whole {
                throw TransferError(.networkConnectionLost, "only a part of the file came.", of: request)
            }
            try file.moveToDestination()
            operation.end(with: .success(DownloadOutput(file: operation.destination, response: response)))
        } catch {
            file.stop()
            operation.end(with: .failure(error))
        }
    }

    /// Whether all has come of an answer that has less than was asked for, as servers may choose.
    private var wantsRest: Bool {
        guard isPart, file.validator != nil, failure == nil else { return false }
        return received > 0 && received == expected && file.length < whole
    }
}

/// What a `Content-Range` says: which bytes come, of how many.
struct ContentRange {
    let first: Int64
    let last: Int64
    /// How long the whole is; `nil` if the server does not know it.
    let total: Int64?

    var count: Int64 { last - first + 1 }

    /// Reads the value of the header field. What makes no sense is `nil`.
    init?(_ text: String) {
        let parts = text.lowercased().split { " -/".contains($0) }
        guard parts.count == 4, parts[0] == "bytes", let first = Int64(parts[1]), let last = Int64(parts[2]) else {
            return nil
        }
        let total = Int64(parts[3])
        guard first <= last, last < total ?? .max, total != nil || parts[3] == "*" else { return nil }
        (self.first, self.last, self.total) = (first, last, total)
    }
}

extension HTTPResponse {
    private var tag: String? { value(forHTTPHeaderField: "ETag") }
    private var lastChange: String? { value(forHTTPHeaderField: "Last-Modified") }

    /// What recognizes the same file later: an entity tag that is not weak, or, if there is none at all, the date of its
    /// last change. In the second of the answer, another change may follow: RFC 9110, 8.8.2.2 and 13.1.5.
    fileprivate var validator: String? {
        if isEncoded { return nil }
        if let tag { return tag.hasPrefix("W/") ? nil : tag }
        guard let lastChange, let change = HTTPDate.date(of: lastChange),
            let now = date, now.timeIntervalSince(change) >= 1
        else { return nil }
        return lastChange
    }

    /// Whether nothing in it says that it is of another file than a validator.
    fileprivate func fits(_ validator: String?) -> Bool {
        let names = [tag, lastChange].compactMap(\.self)
        return names.isEmpty || names.contains { $0 == validator }
    }
}
