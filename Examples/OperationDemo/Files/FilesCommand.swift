struct FilesCommand { let directory: String; let options: Options; func run() async throws(UsageError) -> ExitStatus { .success } }
