"""Where traces come from: Redis, files of OSProfiler and OpenTelemetry, logs of Mistral."""
