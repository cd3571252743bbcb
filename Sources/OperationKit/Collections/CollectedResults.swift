/// The results of the elements of a sequence, in the order of the sequence, in whatever order they come.
struct CollectedResults<Output> {
    private var results: [Result<Output, any Error>?] = []

    /// The number of elements up to the last one that has a result.
    var count: Int { results.count }

    mutating func set(_ result: Result<Output, any Error>, at index: Int) {
        while results.count <= index { results.append(nil) }
        results[index] = result
    }

    /// The outputs of `count` elements, or `nil` if one of them has none.
    func outputs(count: Int) -> [Output]? {
        if results.count < count { return nil }
        var outputs: [Output] = []
        outputs.reserveCapacity(count)
        for result in results {
            guard case .success(let output)? = result else { return nil }
            outputs.append(output)
        }
        return outputs
    }

    /// The results of `count` elements. Those that have none were cancelled.
    func results(count: Int) -> [Result<Output, any Error>] {
        (0..<count).map { index in
            (index < results.count ? results[index] : nil) ?? .failure(CancellationError())
        }
    }
}

extension Result where Success: Sendable, Failure == any Error {
    /// Stores what an asynchronous body returns or throws.
    init(_ body: @Sendable () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
