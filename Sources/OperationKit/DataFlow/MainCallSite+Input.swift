#if DEBUG
extension MainCallSite {
    /// That of `main(input:)`.
    static let mainWithInput = MainCallSite(InputProbe(), overriding: OverridingInputProbe())
}

private class InputProbe: IOOperation<Void, Void>, MainCallProbe, @unchecked Sendable {
    var callStack: [UInt] = []
}

private final class OverridingInputProbe: InputProbe, @unchecked Sendable {
    override func main(input: Void) { super.main(input: input) }
}
#endif
