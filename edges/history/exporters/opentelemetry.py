"""Exporter `otlp`: metrics and spans for OpenTelemetry, sent or as files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from osbench.edges.history.exporters.otlp_metrics import metrics_request
from osbench.edges.history.exporters.posting import PAUSE, PAUSE_S, Poster
from osbench.plugin import exporter
from osbench.plugin.errors import ExportError
from osbench.plugin.formatting import count, mask_url, plain
from osbench.plugin.sessions import read_json

#: Headers of requests, as the specification of OTLP's exporters has it: name=value,name=value.
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"

#: Most values of a response.
_VALUES = 10_000


class OpenTelemetry(exporter.LiveExporter):
    """Sends metrics, and the kept traces as spans, to an OTLP endpoint such as port 4318.

    Metrics are counts of iterations by state, and service time, response time and start lag as
    exponential histograms. `run --export otlp=URL` sends metrics during the run as well. Given a
    folder, it writes otlp-metrics.jsonl and otlp-traces.jsonl, a request a line. Requests are JSON
    over HTTP. Credentials are read from the environment variable OTEL_EXPORTER_OTLP_HEADERS, or
    from ~/.netrc.
    """

    NAME: ClassVar[str] = "otlp"
    SCHEMES: ClassVar[tuple[str, ...]] = ("http", "https")
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "spans": {
                "type": "boolean",
                "default": True,
                "description": "whether to export the kept traces",
            },
            "pause_s": PAUSE,
        },
        "additionalProperties": False,
    }

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write otlp-metrics.jsonl and, if there are traces, otlp-traces.jsonl to folder `path`.

        The option `spans` false leaves out the latter.
        """
        metrics = json.dumps(metrics_request(run)) + "\n"
        (path / "otlp-metrics.jsonl").write_text(metrics, "utf-8")
        requests = iter(run.trace_requests() if self.config.get("spans", True) else ())
        first = next(requests, None)
        if first is not None:
            with (path / "otlp-traces.jsonl").open("w", encoding="utf-8") as file:
                file.write(json.dumps(first) + "\n")
                file.writelines(json.dumps(one) + "\n" for one in requests)

    def send(self, run: exporter.ExportedRun, url: str) -> str:
        """Send metrics, then the spans of kept traces; return a line for the user.

        No spans if the option `spans` is false. Raises ExportError if the endpoint cannot be
        reached or refuses a part, or if the variable `HEADERS` is malformed.
        """
        poster = self._poster()
        _post(poster, url, "metrics", metrics_request(run))
        spans = 0
        for request in run.trace_requests() if self.config.get("spans", True) else ():
            _post(poster, url, "traces", request)
            spans += sum(
                len(scope["spans"])
                for group in request["resourceSpans"]
                for scope in group["scopeSpans"]
            )
        return f"sent metrics and {count(spans, 'span')} to {mask_url(url)}"

    def push(self, snapshot: exporter.RunSnapshot, target: str) -> None:
        """Send the present metrics of a run to the URL `target`; do nothing if that is a folder.

        Raises ExportError if the endpoint refuses them, or does not accept them after `TRIES`
        attempts.
        """
        if "://" in target:
            _post(self._poster(), target, "metrics", metrics_request(snapshot))

    def _poster(self) -> Poster:
        headers = {"Content-Type": "application/json"}
        for pair in filter(None, os.environ.get(HEADERS, "").split(",")):
            name, equals, value = pair.partition("=")
            if not equals:
                raise ExportError(f"{HEADERS} must be name=value,name=value")
            headers[name.strip()] = unquote(value.strip())
        return Poster(headers, self.config.get("pause_s", PAUSE_S))


def _post(poster: Poster, url: str, signal: str, request: Mapping[str, Any]) -> None:
    response = poster.post(f"{url.rstrip('/')}/v1/{signal}", json.dumps(request).encode())
    try:
        partial = (read_json(response.content, _VALUES) if response.content else {}).get(
            "partialSuccess"
        ) or {}
    except (ValueError, AttributeError):
        # collectors need not respond in JSON, and a status of 200 says that all was taken
        return
    rejected = partial.get("rejectedDataPoints") or partial.get("rejectedSpans")
    if rejected and int(rejected):
        why = plain(str(partial.get("errorMessage", "")), 300)
        raise ExportError(
            f"{mask_url(url)} refused {rejected} of the {signal}: {why}; correct this, then export "
            "again"
        )
