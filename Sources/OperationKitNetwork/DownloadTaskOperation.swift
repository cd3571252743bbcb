public import Foundation
public import OperationKit

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A file that was loaded.
public struct DownloadOutput: Sendable {
    /// The file. If the server had none to send, it is the one that was there, or there is none.
    public let file: URL
    /// The status and the header fields of the last answer.
    public let response: HTTPResponse

    /// Creates an output, for tests of code that uses one.
    public init(file: URL, response: HTTPResponse) {
        self.file = file
        self.response = response
    }
}

/// An operation that loads a file, and goes on where an earlier one has stopped.
///
/// ```swift
/// let url = URL(string: "https://example.com/film.mp4")!
/// let film = RetryOperation(.http, name: "film") { _ in
///     DownloadTaskOperation(url, to: URL(fileURLWithPath: "film.mp4"))
/// }
/// OperationQueue().addOperation(film)
/// ```
///
/// The body is written to a file beside the destination, whose name ends in `.partial`, and which only its user can
/// read. So the system has to allow for names that are 13 bytes longer than that of the destination. When all
/// of it has come, that file takes the place of the destination, with the mode of the file that was there, or of a new one. If the destination is a symbolic link, the file that it names is replaced, or created, and
/// the part is beside it. What else has the name of the part, or the one that ends in `.partial-note`, stays as it is:
/// a folder, a link, a file that has several names or, unless all files there do, belongs to another user. The
/// operation ends with ``DownloadError/cannotWrite(_:error:)``, which names it. If a new file can't be created to find
/// out its mode, the destination can be read by its user only. The body is not kept in memory, except on Linux what the
/// disk has not taken.
///
/// If the download breaks off or is cancelled, what has come is kept, provided that the server says how to recognize the
/// file: by a strong `ETag`, or, if there is no `ETag` at all, by a `Last-Modified` that is at least a second before the
/// `Date` of the answer. The next operation with the same URL and destination asks for the rest.
/// Of the URL, which may have a secret in it, only a digest is stored. If the file on the server has changed, it
/// starts over. It also does if the answer is not the rest: what counts is its `Content-Range`, also with status 200.
/// If such a server sends a part of what was asked for, the operation asks for the rest. From others,
/// that is a ``TransferError`` with the code `networkConnectionLost`. A part that has all of the file is a success if
/// the server answers with status 416 and this length. A request with a `Range` of its own loads that
/// range, and is not resumed, nor is one with another method than GET. A body that the server sends compressed, without being asked to,
/// is stored as it was before, and can't be resumed: an `Accept-Encoding` of the request is replaced by `identity`.
///
/// An answer without a file leaves the destination as it is, and is a success: status 304 after an `If-None-Match` or
/// `If-Modified-Since`, any other from 300 to 399 that is not followed, 204, 205, and any after the method HEAD. The
/// `status` of the ``DownloadOutput/response`` tells it from others. Any other status below 400 has a file: the text
/// of a 202 replaces the one that is there.
///
/// Two operations, of one process or of two, must not load to the same destination at the same time: the second one
/// ends with ``DownloadError/destinationInUse(_:)``.
///
/// See ``RequestOperation`` for how it ends.
public final class DownloadTaskOperation: RequestOperation<DownloadOutput>, @unchecked Sendable {
    /// Where the file is put. A file that is there is replaced at the end, unless the server has none to send. A folder, a
    /// device, a pipe, a loop of symbolic links, or a link that the system forbids to follow is not: the operation ends with
    /// ``DownloadError/cannotWrite(_:error:)`` before anything is sent.
    public let destination: URL

    /// Creates an operation.
    ///
    /// - Parameters:
    ///   - request: The request; `nil` if it is set, or bound, later.
    ///   - destination: Where the file is put. A URL without a scheme is a path.
    ///   - name: The name of the operation. The default is the method and the URL, without its query.
    public init(_ request: URLRequest? = nil, to destination: URL, name: String? = nil) {
        self.destination = destination.asFile
        super.init(request, name: name)
    }

    /// Creates an operation that loads what is at a URL.
    public convenience init(_ url: URL, to destination: URL, name: String? = nil) {
        self.init(URLRequest(url: url), to: destination, name: name)
    }

    override func send(_ request: URLRequest) throws {
        start(FileTransfer(request, for: self, try PartialFile(for: destination, of: request.url)))
    }
}

/// What went wrong with the file of a download.
public enum DownloadError: Sendable, LocalizedError, CustomNSError, ReportedError {
    /// Another operation, perhaps of another process, loads to the same destination. Code 1.
    case destinationInUse(URL)
    /// The file could not be written. `error` is that of the system. Code 2.
    case cannotWrite(URL, error: any Error)

    package func text(depth: Int) -> String {
        switch self {
        case .destinationInUse(let file): "“\(file.path)” is being downloaded by another operation."
        case .cannotWrite(let file, let error): "“\(file.place)” could not be written: \(error.systemText)"
        }
    }

    package var numericCode: Int {
        switch self {
        case .destinationInUse: 1
        case .cannotWrite: 2
        }
    }

    package var underlyingError: (any Error)? {
        if case .cannotWrite(_, let error) = self { error } else { nil }
    }
}
