import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Where figures were measured, as far as the program can know.
struct Machine: Codable, Equatable, Sendable {
    let processor: String
    let cores: Int
    /// In bytes.
    let memory: UInt64
    let system: String
    /// The compiler that the benchmark was built with.
    let swift: String
    /// `release` or `debug`.
    let configuration: String

    static var current: Machine {
        let process = ProcessInfo.processInfo
        return Machine(
            processor: currentProcessor, cores: process.activeProcessorCount, memory: process.physicalMemory,
            system: process.operatingSystemVersionString, swift: compiler, configuration: currentConfiguration)
    }

    /// The average of the last minute.
    static var currentLoad: Double? {
        var loads = [0.0]
        return unsafe getloadavg(&loads, 1) == 1 ? loads[0] : nil
    }

    /// A line for people.
    var description: String {
        let gibibytes = Int((Double(memory) / Double(1 << 30)).rounded())
        return "\(processor), \(cores) core\(cores == 1 ? "" : "s"), \(gibibytes) GiB, \(system), "
            + "Swift \(swift), \(configuration) build"
    }

    /// The model in the text of `/proc/cpuinfo`, which each architecture writes in its own way.
    static func processor(inProcessorInformation text: String) -> String? {
        for key in ["model name", "Model", "cpu model"] {
            for line in text.split(separator: "\n") {
                let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                if parts.count == 2, parts[0] == key, !parts[1].isEmpty { return parts[1] }
            }
        }
        return nil
    }

    private static var currentProcessor: String {
        #if canImport(Darwin)
        var bytes = [CChar](repeating: 0, count: 256)
        var size = bytes.count
        if unsafe sysctlbyname("machdep.cpu.brand_string", &bytes, &size, nil, 0) == 0 {
            return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        #else
        let information = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)
        if let model = information.flatMap(processor(inProcessorInformation:)) { return model }
        #endif
        return "unknown \(architecture) processor"
    }

    private static var architecture: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #else
        "other"
        #endif
    }

    private static var compiler: String {
        #if compiler(>=6.5)
        "6.5 or later"
        #elseif compiler(>=6.4)
        "6.4"
        #elseif compiler(>=6.3)
        "6.3"
        #else
        "6.2"
        #endif
    }

    private static var currentConfiguration: String {
        #if DEBUG
        "debug"
        #else
        "release"
        #endif
    }
}
