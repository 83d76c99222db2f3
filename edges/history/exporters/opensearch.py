"""Exporter `opensearch`: iterations and workloads as documents of OpenSearch or Elasticsearch.

Bulk requests: https://docs.opensearch.org/latest/api-reference/document-apis/bulk/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from osbench.edges.history.exporters.posting import BUSY, PAUSE, PAUSE_S, Poster
from osbench.plugin import exporter
from osbench.plugin.errors import ExportError
from osbench.plugin.formatting import count, mask_url, plain, timestamp
from osbench.plugin.sessions import read_json

#: Documents, and bytes, of a request.
DOCUMENTS = 5_000
BYTES = 4 << 20

#: Most values of the response for a document.
_VALUES = 200

#: Figures of a distribution that a document of a workload has, seconds.
_FIGURES = ("count", "min", "mean", "p50", "p90", "p95", "p99", "p999", "max")

#: Id and the two lines of a document.
_Document = tuple[str, bytes]


class OpenSearch(exporter.Exporter):
    """Sends a document for each iteration and workload to OpenSearch or Elasticsearch.

    Indices are PREFIX-iterations and PREFIX-workloads. Ids follow from the run: a document that is
    sent again replaces itself. Documents that the server is too busy to take are sent again, with
    growing pauses; others that it refuses are counted and reported. Credentials are read from
    ~/.netrc, certificates from the file that the environment variable REQUESTS_CA_BUNDLE names.
    """

    NAME: ClassVar[str] = "opensearch"
    SCHEMES: ClassVar[tuple[str, ...]] = ("http", "https")
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "prefix": {
                "type": "string",
                "pattern": "^[a-z][a-z0-9_-]*$",
                "default": "osbench",
                "description": "first part of the names of the indices",
            },
            "pause_s": PAUSE,
        },
        "additionalProperties": False,
    }

    def send(self, run: exporter.ExportedRun, url: str) -> str:
        """Send a document for each workload and iteration; return a line for the user.

        Raises ExportError if a request fails, the server stays busy, or has refused some documents;
        in the last case all others have been sent.
        """
        pause_s = self.config.get("pause_s", PAUSE_S)
        poster = Poster({"Content-Type": "application/x-ndjson"}, pause_s)
        bulk = _Bulk(poster, f"{url.rstrip('/')}/_bulk")
        waiting: dict[str, bytes] = {}
        size = 0
        for document_id, lines in _documents(run, self.config.get("prefix", "osbench")):
            if len(waiting) >= DOCUMENTS or size >= BYTES:
                bulk.send(waiting)
                waiting, size = {}, 0
            waiting[document_id] = lines
            size += len(lines)
        bulk.send(waiting)
        if bulk.refused:
            raise ExportError(
                f"{mask_url(url)} refused {bulk.refused} of {bulk.refused + bulk.taken} documents; "
                f"the first: {bulk.reason}; correct this, then export again"
            )
        return f"sent {count(bulk.taken, 'document')} to {mask_url(url)}"


class _Bulk:
    """Sends documents in bulk requests, again (at most `TRIES` times) while the server is busy.

    `taken` and `refused` count documents over all calls.
    """

    def __init__(self, poster: Poster, url: str) -> None:
        self._poster = poster
        self._url = url
        self.taken = self.refused = 0
        #: Why the first one was refused.
        self.reason = ""

    def send(self, documents: Mapping[str, bytes]) -> None:
        """Send documents; again, with growing pauses, if the server is too busy for them.

        `documents`: lines of the bulk request by document id. Counts accepted and refused ones.
        Raises ExportError if a request fails, the server stays busy for `TRIES` attempts, or its
        response does not fit the documents.
        """
        waiting = dict(documents)
        busy = ""
        for _ in self._poster.pauses():
            if not waiting:
                return
            response = self._poster.post(self._url, b"".join(waiting.values()))
            for document_id, status, reason in _items(response.content, len(waiting)):
                if status in BUSY:
                    busy = reason
                elif waiting.pop(document_id, None) is None:
                    raise ExportError(
                        f"{mask_url(self._url)} returned another document; give an address of "
                        "OpenSearch itself"
                    )
                elif 200 <= status < 300:
                    self.taken += 1
                else:
                    self.refused += 1
                    self.reason = self.reason or reason
        if waiting:
            raise ExportError(
                f"{mask_url(self._url)} did not take {count(len(waiting), 'document')}: {busy}; "
                "export again when it is less busy"
            )


def _items(response: bytes, expected: int) -> list[tuple[str, int, str]]:
    """Return (id, HTTP status, problem) of each document in the response to a bulk request.

    Raises ExportError if the response has another form, or not `expected` documents.
    """
    try:
        found = [
            next(iter(item.values()))
            for item in read_json(response, _VALUES * (expected + 1))["items"]
        ]
        items = [(str(one["_id"]), int(one["status"]), _reason(one)) for one in found]
    except (AttributeError, KeyError, TypeError, ValueError, StopIteration):
        raise ExportError(
            "the response to a bulk request is of another form; give the address of OpenSearch"
        ) from None
    if len(items) != expected:
        raise ExportError(
            f"expected {expected} results of a bulk request, got {len(items)}; give an address of "
            "OpenSearch itself"
        )
    return items


def _reason(item: Mapping[str, Any]) -> str:
    error = item.get("error") or {}
    text = f"{error.get('type')}: {error.get('reason')}" if isinstance(error, Mapping) else error
    return plain(f"HTTP {item['status']} {text}", 300)


def _documents(run: exporter.ExportedRun, prefix: str) -> Iterator[_Document]:
    summary = run.summary
    common = {name: summary[name] for name in ("run_id", "task", "tags")}
    names = [workload["name"] for workload in summary["workloads"]]
    # runs of older releases have only the one
    scenarios = [one.get("scenario", one["name"]) for one in summary["workloads"]]
    for number, workload in enumerate(summary["workloads"]):
        found = common | {
            "@timestamp": timestamp(run.at),
            "exit_code": summary["exit_code"],
            "workload": number,
            "name": workload["name"],
            "scenario": scenarios[number],
            "subtask": workload["subtask"],
            "sla_passed": all(verdict["success"] for verdict in workload["sla"]),
            **{name: workload["accounting"][name] for name in ("planned", *exporter.STATES)},
            **{name: _figures(workload["latency"][name]["ok"]) for name in ("service", "response")},
            "start_lag": _figures(workload["start_lag"]),
        }
        yield _document(f"{prefix}-workloads", f"{summary['run_id']}-{number}", found)
    for row in run.rows():
        document_id = f"{summary['run_id']}-{row.workload}-{row.iteration}"
        at = run.t0_at[row.workload] + (row.started_s or row.due_s or 0.0)
        found = common | {
            "@timestamp": timestamp(at),
            "name": names[row.workload],
            "scenario": scenarios[row.workload],
            # without times: the timestamp above is the start, or the due time of the iteration
            **exporter.json_values(row, None),
        }
        yield _document(f"{prefix}-iterations", document_id, found)


def _figures(times: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}_s" if name != "count" else name: times[name] for name in _FIGURES}


def _document(index: str, document_id: str, fields: Mapping[str, Any]) -> _Document:
    # what is empty is left out: it would be a field of the mapping, of a type that is guessed
    kept = {name: value for name, value in fields.items() if value not in (None, "")}
    action = json.dumps({"index": {"_index": index, "_id": document_id}})
    return document_id, f"{action}\n{json.dumps(kept)}\n".encode()
