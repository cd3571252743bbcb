// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "OperationKit",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "OperationKit", targets: ["OperationKit"]),
        .library(name: "OperationKitTimelines", targets: ["OperationKitTimelines"]),
        .library(name: "OperationKitProcess", targets: ["OperationKitProcess"]),
        .library(name: "OperationKitNetwork", targets: ["OperationKitNetwork"]),
        .library(name: "OperationKitTesting", targets: ["OperationKitTesting"]),
        .executable(name: "OperationDemo", targets: ["OperationDemo"]),
        .executable(name: "OperationBenchmark", targets: ["OperationBenchmark"]),
    ],
    targets: [
        .target(name: "OperationKit", dependencies: ["COperationSupport"]),
        .target(name: "COperationSupport"),
        .target(name: "OperationKitTimelines", dependencies: ["OperationKit"]),
        .target(name: "OperationKitProcess", dependencies: ["OperationKit", "CProcessSupport"]),
        .target(name: "CProcessSupport"),
        .target(name: "OperationKitNetwork", dependencies: ["OperationKit"]),
        .target(name: "OperationKitTesting", dependencies: ["OperationKit"]),
        .target(name: "CommandLineSupport", path: "Examples/CommandLineSupport"),
        .executableTarget(
            name: "OperationDemo", dependencies: ["OperationKit", "OperationKitTimelines", "CommandLineSupport"],
            path: "Examples/OperationDemo"),
        .executableTarget(
            name: "OperationBenchmark", dependencies: ["OperationKit", "CommandLineSupport"],
            path: "Examples/OperationBenchmark", exclude: ["README.md"]),
        .executableTarget(
            name: "Builder", dependencies: ["OperationKit", "OperationKitProcess"], path: "Examples/Builder"),
        .executableTarget(
            name: "Pipeline", dependencies: ["OperationKit", "OperationKitProcess", "OperationKitTimelines"],
            path: "Examples/Pipeline"),
        .executableTarget(
            name: "Downloader", dependencies: ["OperationKit", "OperationKitNetwork"], path: "Examples/Downloader"),
        .executableTarget(
            name: "Sync", dependencies: ["OperationKit", "OperationKitNetwork"], path: "Examples/Sync"),
        .target(
            name: "OperationKitTestSupport", dependencies: ["OperationKit", "OperationKitTesting"],
            path: "Tests/OperationKitTestSupport"),
        .testTarget(
            name: "OperationKitTests",
            dependencies: ["COperationSupport", "OperationKit", "OperationKitTimelines", "OperationKitTestSupport"]),
        .testTarget(
            name: "OperationKitTimelinesTests",
            dependencies: ["OperationKit", "OperationKitTimelines", "OperationKitTestSupport"]),
        .testTarget(
            name: "OperationKitProcessTests",
            dependencies: ["CProcessSupport", "OperationKit", "OperationKitProcess", "OperationKitTestSupport"]),
        .testTarget(
            name: "OperationKitNetworkTests",
            dependencies: ["OperationKit", "OperationKitNetwork", "OperationKitProcess", "OperationKitTestSupport"]),
        .testTarget(
            name: "OperationKitTestingTests",
            dependencies: ["OperationKit", "OperationKitTesting", "OperationKitTestSupport"]),
        .testTarget(
            name: "OperationKitMainActorTests", dependencies: ["OperationKit", "OperationKitTestSupport"],
            swiftSettings: [.defaultIsolation(MainActor.self)]),
        .testTarget(name: "OperationKitConcurrencyTests", dependencies: ["OperationKit", "OperationKitTestSupport"]),
        .testTarget(name: "OperationKitNightlyTests", dependencies: ["OperationKit", "OperationKitTestSupport"]),
        .testTarget(
            name: "ExampleTests",
            dependencies: [
                "Builder", "Downloader", "Pipeline", "Sync", "OperationBenchmark", "OperationDemo",
                "CommandLineSupport", "OperationKit", "OperationKitProcess", "OperationKitTestSupport",
            ]),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets {
    var settings = target.swiftSettings ?? []

    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
    settings.append(.enableUpcomingFeature("ExistentialAny"))

    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
    settings.append(.enableUpcomingFeature("MemberImportVisibility"))

    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
    settings.append(.enableUpcomingFeature("InternalImportsByDefault"))

    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0458-strict-memory-safety.md
    settings.append(.strictMemorySafety())

    target.swiftSettings = settings
}
