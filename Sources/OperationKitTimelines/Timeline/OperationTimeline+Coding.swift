import Foundation
import OperationKit

/// The keys of the format.
private enum Key: String, CodingKey {
    // Of a timeline.
    case format, start, duration, dropped, operations
    // Of an entry.
    case id, name, type, parent, added, started, running, cancelled, finished
    case waits, retries, outcome, error, dependencies, resources, composite, limit
}

extension OperationTimeline: Codable {
    /// The version of the format, which changes when older versions of the library would misread it. They refuse an outcome that they
    /// do not know.
    private static let format = 1

    /// Creates a timeline from what an encoder has written.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if something is missing, the format is a newer one, two entries have the same
    ///   identifier, a parent is not among the entries or is inside its own child, a time is negative or before one that comes
    ///   earlier, or an operation depends on itself. The error names the entry.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let format = try container.decode(Int.self, forKey: .format)
        guard format == OperationTimeline.format else {
            throw DecodingError.dataCorruptedError(
                forKey: .format, in: container,
                debugDescription: "The timeline has format \(format); this version reads format \(Self.format).")
        }
        let entries = try container.decode([Entry].self, forKey: .operations)
        let duration = try container.decode(Duration.self, forKey: .duration)
        let dropped = try container.decodeIfPresent(Int.self, forKey: .dropped) ?? 0
        if let problem = Self.problem(in: entries, droppedCount: dropped) ?? Self.disorder(in: entries, duration) {
            throw DecodingError.dataCorruptedError(forKey: .operations, in: container, debugDescription: problem)
        }
        self.init(
            checked: entries,
            startDate: try container.decodeIfPresent(Int64.self, forKey: .start).map { Date(milliseconds: $0) },
            duration: duration, droppedCount: dropped)
    }

    /// Writes the timeline: times in nanoseconds, the date of the beginning in milliseconds since 1970.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(Self.format, forKey: .format)
        try container.encodeIfPresent(startDate?.milliseconds, forKey: .start)
        try container.encode(duration, forKey: .duration)
        if droppedCount > 0 { try container.encode(droppedCount, forKey: .dropped) }
        try container.encode(entries, forKey: .operations)
    }

    /// Says what no recorder writes, if something is so.
    private static func disorder(in entries: [Entry], _ duration: Duration) -> String? {
        if duration < .zero { return "The duration of the timeline is negative." }
        for entry in entries {
            if !entry.isInOrder { return "The times of “\(entry.name)” (\(entry.id)) are not in order." }
            if entry.dependencies.contains(entry.id) { return "“\(entry.name)” (\(entry.id)) depends on itself." }
        }
        guard let position = entries.positionsWithoutParent.first, let parent = entries[position].parent else {
            return nil
        }
        let isThere = entries.contains { $0.id == parent }
        return "The parent of “\(entries[position].name)” (\(entries[position].id)), \(parent), "
            + (isThere ? "is inside it." : "is not in the timeline.")
    }
}

extension OperationTimeline.Entry: Codable {
    /// Creates an entry from what an encoder has written.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if something is missing, or of another kind.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func value<Value: Decodable>(_ key: Key) throws -> Value? {
            try container.decodeIfPresent(Value.self, forKey: key)
        }
        func time(_ key: Key) throws -> Duration? { try container.decodeIfPresent(Duration.self, forKey: key) }
        try self.init(
            id: container.decode(OperationID.self, forKey: .id), name: container.decode(String.self, forKey: .name),
            typeName: container.decode(String.self, forKey: .type), parent: value(.parent), added: time(.added),
            started: time(.started), running: time(.running), cancelled: time(.cancelled),
            finished: time(.finished), waits: value(.waits) ?? [], retries: value(.retries) ?? [],
            dependencies: value(.dependencies) ?? [], resources: value(.resources) ?? [],
            isComposite: value(.composite) ?? false, limit: value(.limit))
        guard let outcome: String = try value(.outcome) else { return }
        let error = try value(.error) ?? ""
        self.outcome =
            switch outcome {
            case "success": .success
            case "cancelled": .cancelled
            case "failed": .failed(error)
            case "skipped": .skipped(error)
            default:
                throw DecodingError.dataCorruptedError(
                    forKey: .outcome, in: container, debugDescription: "There is no outcome “\(outcome)”.")
            }
    }

    /// Writes the entry, without what is empty: times in nanoseconds.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        func list(_ list: [some Encodable], _ key: Key) throws {
            if !list.isEmpty { try container.encode(list, forKey: key) }
        }
        try container.encode(id, forKey: .id)
        try container.encode(name, forKey: .name)
        try container.encode(typeName, forKey: .type)
        try container.encodeIfPresent(parent, forKey: .parent)
        try container.encodeIfPresent(added, forKey: .added)
        try container.encodeIfPresent(started, forKey: .started)
        try container.encodeIfPresent(running, forKey: .running)
        try container.encodeIfPresent(cancelled, forKey: .cancelled)
        try container.encodeIfPresent(finished, forKey: .finished)
        try list(waits, .waits)
        try list(retries, .retries)
        try container.encodeIfPresent(outcome?.name, forKey: .outcome)
        try container.encodeIfPresent(outcome?.error, forKey: .error)
        try list(dependencies, .dependencies)
        try list(resources, .resources)
        if isComposite { try container.encode(true, forKey: .composite) }
        try container.encodeIfPresent(limit, forKey: .limit)
    }
}

// Times are whole nanoseconds in the format. The code that the compiler writes for waits and attempts calls these, too.

extension KeyedDecodingContainer {
    func decode(_ type: Duration.Type, forKey key: Key) throws -> Duration {
        .nanoseconds(try decode(Int64.self, forKey: key))
    }

    func decodeIfPresent(_ type: Duration.Type, forKey key: Key) throws -> Duration? {
        try decodeIfPresent(Int64.self, forKey: key).map { .nanoseconds($0) }
    }
}

extension KeyedEncodingContainer {
    mutating func encode(_ time: Duration, forKey key: Key) throws {
        try encode(time.nanoseconds, forKey: key)
    }

    mutating func encodeIfPresent(_ time: Duration?, forKey key: Key) throws {
        try encodeIfPresent(time?.nanoseconds, forKey: key)
    }
}
