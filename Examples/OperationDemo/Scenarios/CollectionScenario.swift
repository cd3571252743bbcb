import Foundation
import OperationKit
import OperationKitTimelines

/// Syncs 24 images in the four strategies, and tries again those that failed.
enum CollectionScenario {
    static let imageCount = 24
    static let batchSize = 5

    /// A part for each strategy that the mode asks for.
    static func sections(_ mode: Mode, width: Int) -> [Section] {
        let strategies: [SyncStrategy] =
            switch mode {
            case .serial: [.sequentialItems, .sequentialBatches]
            case .concurrent: [.parallelItems, .parallelBatches]
            case .both: SyncStrategy.allCases
            }
        return strategies.map { strategy in
            Section(
                title: strategy.title(width: width), name: strategy.isBatch ? "batches" : "images",
                limit: strategy.isParallel ? width : 1
            ) { bench in
                await play(strategy.sync(on: bench, width: width), on: bench)
            }
        }
    }

    private static func play<Sync: CollectionOperation<Image>>(_ sync: Sync, on bench: Bench) async -> Section.Findings
    {
        let images = (1...imageCount).map(Image.init)
        let failures = await failures(of: sync, on: images)
        let duration = bench.recording.elapsed
        let again = await self.failures(of: sync, on: failures.map(\.item))
        let names = failures.map(\.item.name).joined(separator: ", ")
        return {
            [
                "\(failures.count) of \(counted(images.count, "image")) failed after \(duration.milliseconds) ms: "
                    + "\(names).",
                "Tried again, \(again.count) of \(counted(failures.count, "image")) failed.",
            ]
        }
    }

    /// What every caller does, whatever the strategy.
    private static func failures<Sync: CollectionOperation<Image>>(
        of sync: Sync, on images: [Image]
    ) async -> [CollectionFailure<Image>] {
        sync.failures(in: images, errors: await sync.performOperation(on: images))
    }
}

/// The four strategies.
private enum SyncStrategy: CaseIterable {
    case sequentialItems, sequentialBatches, parallelItems, parallelBatches

    func title(width: Int) -> String {
        switch self {
        case .sequentialItems: "SequentialItemOperation: one image after the other"
        case .sequentialBatches:
            "SequentialBatchOperation: one batch of \(CollectionScenario.batchSize) after the other"
        case .parallelItems: "ParallelItemOperation: up to \(counted(width, "image")) at a time"
        case .parallelBatches:
            "ParallelBatchOperation: up to \(width) \(width == 1 ? "batch" : "batches") of "
                + "\(CollectionScenario.batchSize) at a time"
        }
    }

    var isBatch: Bool { self == .sequentialBatches || self == .parallelBatches }
    var isParallel: Bool { self == .parallelItems || self == .parallelBatches }

    func sync(on bench: Bench, width: Int) -> any CollectionOperation<Image> {
        switch self {
        case .sequentialItems: SequentialItemSync(bench: bench, width: width)
        case .sequentialBatches: SequentialBatchSync(bench: bench, width: width)
        case .parallelItems: ParallelItemSync(bench: bench, width: width)
        case .parallelBatches: ParallelBatchSync(bench: bench, width: width)
        }
    }
}

/// A made-up image. Every ninth cannot be synced at the first attempt.
private struct Image: Sendable {
    let number: Int

    var digits: String { (number < 10 ? "0" : "") + "\(number)" }
    var name: String { "image-" + digits }
    var isDifficult: Bool { number % 9 == 0 }
}

private struct ConnectionLost: LocalizedError, CustomStringConvertible {
    var description: String { "The connection was lost." }
    var errorDescription: String? { description }
}

/// The work, which is the same for all strategies.
private class ImageSync: @unchecked Sendable {
    let maxConcurrentOperationCount: Int
    let batchSize = CollectionScenario.batchSize
    private let bench: Bench
    private let lock = NSLock()
    private var attempts: Set<Int> = []

    init(bench: Bench, width: Int) {
        self.bench = bench
        maxConcurrentOperationCount = width
    }

    func performOperation(onItem image: Image, completion: @escaping @Sendable ((any Error)?) -> Void) {
        sync([image], name: image.name, seconds: 0.05, completion: completion)
    }

    /// A batch saves the time that each connection takes.
    func performOperation(onBatch images: [Image], completion: @escaping @Sendable ((any Error)?) -> Void) {
        let name = images.count == 1 ? images[0].name : "\(images[0].name)–\(images[images.count - 1].digits)"
        sync(images, name: name, seconds: 0.03 + 0.02 * Double(images.count), completion: completion)
    }

    private func sync(
        _ images: [Image], name: String, seconds: Double, completion: @escaping @Sendable ((any Error)?) -> Void
    ) {
        let fails = lock.withLock { images.count { $0.isDifficult && attempts.insert($0.number).inserted } > 0 }
        let track = bench.track(name, "ImageSync")
        track.added(to: bench.recording.queueID)
        track.started()
        bench.after(seconds) {
            let error = fails ? ConnectionLost() : nil
            track.finished(error.map { .failed("\($0)") } ?? .success)
            completion(error)
        }
    }
}

// One word apart.
private final class SequentialItemSync: ImageSync, SequentialItemOperation, @unchecked Sendable {}
private final class SequentialBatchSync: ImageSync, SequentialBatchOperation, @unchecked Sendable {}
private final class ParallelItemSync: ImageSync, ParallelItemOperation, @unchecked Sendable {}
private final class ParallelBatchSync: ImageSync, ParallelBatchOperation, @unchecked Sendable {}
