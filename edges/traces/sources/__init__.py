"""Sources of traces: Redis, Tempo and Jaeger, files of OSProfiler and OpenTelemetry, Mistral's
logs.
"""
