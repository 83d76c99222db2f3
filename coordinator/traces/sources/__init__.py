"""Sources of traces: Redis, files of OSProfiler and OpenTelemetry, logs of Mistral."""
