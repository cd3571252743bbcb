import Foundation
import OperationKit

/// Syncs 24 images in the four strategies, draws each, lists the images that failed, and tries just those again.
struct CollectionScenario {
    static let imageCount = 24
    static let batchSize = 5

    let options: Options
    let console: Console

    func run() async {
        var sentences: [String] = []
        for strategy in strategies {
            if !sentences.isEmpty { console.print("") }
            let milliseconds = await run(strategy)
            sentences.append("\(strategy.title(width: options.width)): \(milliseconds) ms")
        }
        console.print("")
        for sentence in sentences { console.print(sentence) }
    }

    private var strategies: [SyncStrategy] {
        switch options.mode ?? Scenario.collection.defaultMode {
        case .serial: [.sequentialItems, .sequentialBatches]
        case .concurrent: [.parallelItems, .parallelBatches]
        case .both: SyncStrategy.allCases
        }
    }

    /// Returns the milliseconds from the first event to the last.
    private func run(_ strategy: SyncStrategy) async -> Int {
        console.print(console.style.bold("collection, \(strategy.title(width: options.width))"))
        console.print("")
        let line = EventLine(style: console.style)
        let bench = Bench(queue: OperationQueue(), speed: options.speed) { [console] event in
            console.print(line.text(for: event))
        }
        let sync = strategy.sync(on: bench, width: options.width)
        let images = (1...Self.imageCount).map(Image.init)
        let failures = await failures(of: sync, on: images)

        let events = bench.log.events
        console.print("")
        for line in Timeline(events).lines(columns: console.columns, style: console.style) { console.print(line) }
        console.print("")
        console.print("\(failures.count) of \(counted(images.count, "image")) failed:")
        for failure in failures { console.print("  \(failure.item.name): \(failure.error.localizedDescription)") }
        console.print("")
        let again = await self.failures(of: sync, on: failures.map(\.item))
        console.print("")
        console.print("Tried again, \(again.count) of \(counted(failures.count, "image")) failed.")
        return (events.last?.time.milliseconds ?? 0) - (events.first?.time.milliseconds ?? 0)
    }

    /// What every caller does, whatever the strategy.
    private func failures<Sync: CollectionOperation<Image>>(
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

private struct ConnectionLost: LocalizedError {
    var errorDescription: String? { "The connection was lost." }
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
        let report = bench.reporter(name)
        report(.started)
        let fails = lock.withLock { images.count { $0.isDifficult && attempts.insert($0.number).inserted } > 0 }
        bench.after(seconds) {
            let error = fails ? ConnectionLost() : nil
            report(fails ? .workFailed : .workFinished, error?.localizedDescription)
            completion(error)
        }
    }
}

// One word apart.
private final class SequentialItemSync: ImageSync, SequentialItemOperation, @unchecked Sendable {}
private final class SequentialBatchSync: ImageSync, SequentialBatchOperation, @unchecked Sendable {}
private final class ParallelItemSync: ImageSync, ParallelItemOperation, @unchecked Sendable {}
private final class ParallelBatchSync: ImageSync, ParallelBatchOperation, @unchecked Sendable {}
