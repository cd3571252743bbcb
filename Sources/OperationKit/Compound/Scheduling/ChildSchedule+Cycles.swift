extension ChildSchedule {
    /// Children that wait for each other in a circle, each for the one after it and the last for the first; `nil` if
    /// there are none.
    ///
    /// Complexity: linear in the children that wait for those in `slots`, directly or not.
    ///
    /// - Parameter slots: Where to search. A circle is found if it passes through one of these.
    mutating func cycle(through slots: some Sequence<Int>) -> [Int]? {
        searches += 1
        var path: [(slot: Int, next: Int)] = []
        for start in slots where records[start].search < 2 * searches && mayBeOnCircle(start) {
            path.append((start, 0))
            records[start].search = 2 * searches
            while let (slot, next) = path.last {
                guard next < records[slot].dependents.count else {
                    records[slot].search = 2 * searches + 1
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let dependent = records[slot].dependents[next]
                if hasBegun(dependent) { continue }
                switch records[dependent].search - 2 * searches {
                case 0: return path.map(\.slot).drop { $0 != dependent }.reversed()
                case 1: continue
                default:
                    path.append((dependent, 0))
                    records[dependent].search = 2 * searches
                }
            }
        }
        return nil
    }

    /// Only a child that waits for others, and for which others wait, can be on a circle.
    private func mayBeOnCircle(_ slot: Int) -> Bool {
        records[slot].open > records[slot].openOutside && !records[slot].dependents.isEmpty
    }

    /// Whether a child waits for nothing any more.
    private func hasBegun(_ slot: Int) -> Bool {
        switch records[slot].phase {
        case .running, .gone: true
        case .free, .waiting, .ready, .starting, .queued, .outside: false
        }
    }
}
