/// The object that does the work of a run, carried to the threads on which it does.
///
/// Conforming classes promise to be safe there; whether the compiler checks it is for them to say, with `Sendable`.
struct Performer<Object>: @unchecked Sendable {
    let object: Object

    init(_ object: Object) {
        self.object = object
    }
}
