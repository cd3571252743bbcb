enum InteractiveSession { static func run(_ options: Options) async throws(UsageError) -> ExitStatus { .success } }
