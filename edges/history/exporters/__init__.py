"""Exporters to systems that keep results, one per module: OpenSearch, OTLP, Parquet, alerts."""
