import Foundation
import OperationKitTestSupport
import Testing

@testable import OperationKit

/// How many children and workers there may be.
@Suite("Worker places") struct WorkerPlacesTests {
    @Test("A child gives its place back, wherever it ends", arguments: [ChildPlace.worker, .detached, .queue])
    func places(place: ChildPlace) {
        var places = WorkerPlaces(limit: 1)
        #expect(places.hasPlaceForChild)
        places.childStarted()
        #expect(!places.hasPlaceForChild)
        switch place {
        case .worker: break
        case .detached: places.detached()
        case .queue: places.handedToQueue(priority: .normal)
        }
        places.ended(in: place)
        #expect(places.hasPlaceForChild)
        #expect(places.started == 0 && places.detachedCount == 0 && places.queued == 0)
    }

    @Test("Detached children take places of the queue only where the queue starts children")
    func effectiveLimit() {
        var places = WorkerPlaces(limit: 2)
        places.childStarted()
        places.detached()
        #expect(places.effectiveLimit == 2)
        places.childStarted()
        places.handedToQueue(priority: .normal)
        #expect(places.effectiveLimit == 1)
    }

    @Test(
        "A worker does not overtake a child of low priority that was handed to the queue",
        arguments: [
            (Operation.QueuePriority.low, Operation.QueuePriority.low), (.veryLow, .veryLow), (.normal, .normal),
            (.high, .normal),
        ])
    func workerPriority(child: Operation.QueuePriority, worker: Operation.QueuePriority) {
        var places = WorkerPlaces(limit: 2)
        places.childStarted()
        places.handedToQueue(priority: child)
        #expect(places.workerPriority == worker)
        places.ended(in: .queue)
        #expect(places.workerPriority == .normal)
    }

    @Test("A worker leaves where a child that the queue starts waits for its place")
    func roomForWorker() {
        var places = WorkerPlaces(limit: 1)
        let isRequested = places.requestWorker(isCancelled: false)
        #expect(isRequested)
        places.workerStarted()
        places.childStarted()
        #expect(places.hasRoomForWorker)
        places.handedToQueue(priority: .normal)
        #expect(!places.hasRoomForWorker)
        places.limit = -1
        #expect(places.hasRoomForWorker)
    }

    @Test("Cancelled children get a worker also where the limit is 0")
    func cancelled() {
        var places = WorkerPlaces(limit: 0)
        let isRequested = places.requestWorker(isCancelled: false)
        #expect(!isRequested)
        let isRequested2 = places.requestWorker(isCancelled: true)
        #expect(isRequested2)
    }
}
