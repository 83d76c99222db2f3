"""Interface of trace sources, and detection of the format of a file by its content."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from osbench.common.errors import UsageError
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import read_regular
from osbench.coordinator.formatting import count
from osbench.edges.traces.model.spans import Span, SpanOrigin, Trace, better
from osbench.edges.traces.sources.mistral_log import MistralLog, is_trace_point, lines
from osbench.edges.traces.sources.osprofiler_json import OsprofilerReports
from osbench.edges.traces.sources.otlp import OtlpSpans

#: Top-level keys of the kinds of data (signals) that a collector may write to one file.
_SIGNALS = frozenset(("resourceSpans", "resourceMetrics", "resourceLogs"))

#: Largest file of JSON, bytes: it has to be read as a whole.
_LARGEST = 1 << 30

#: Lines of a file that are read to detect its format.
_LOOKED_AT = 1000


class TraceSource(Protocol):
    """Interface of a source, such as a file or store, from which traces are read by their ids."""

    #: Entries that could not be read.
    skipped: int

    def read(self, wanted: Collection[str]) -> Iterator[Trace]:
        """Yield the stored traces with these ids, keys as `trace_key` makes them.

        In any order; nothing for unknown ids. Raises OsbenchError.
        """


class FileSource(TraceSource, Protocol):
    """Interface of a source of which all traces can be read, such as a file."""

    def all(self) -> Iterator[Trace]:
        """Yield every trace of the source, in any order. Raises OsbenchError."""


def open_file(path: Path, *, everything: bool = False) -> FileSource:
    """Open a file with traces: a log of Mistral, JSON of OSProfiler, or OTLP in JSON.

    The format is detected by content; JSON is one document, a list, or one per line. `everything`
    keeps arguments, parameters and queries. Raises UsageError if the file cannot be read or has
    another format, such as a log without a trace point in its first 1,000 lines.
    """
    try:
        found = lines(path)
        begin = next((line for line in found if line.strip()), "")
        if begin.lstrip()[:1] in ("{", "["):
            text = read_regular(path, _LARGEST).decode("utf-8-sig", "replace")
            return _json(path, text, everything)
        for _, line in zip(range(_LOOKED_AT), chain((begin,), found), strict=False):
            if is_trace_point(line):
                return MistralLog(path, everything=everything)
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; give a file that can be read"
        ) from None
    raise UsageError(
        f"{path} has no traces in a known format; give trace points in a log, the JSON of "
        "`osprofiler trace show --json`, or OTLP in JSON"
    )


def _json(path: Path, text: str, everything: bool) -> FileSource:
    try:
        documents, bad = _documents(text)
    except ValueError as error:
        raise UsageError(
            f"{path} is not JSON ({error}); give a complete file of osprofiler trace show --json, "
            "or OTLP in JSON"
        ) from None
    except RecursionError:
        raise UsageError(
            f"{path} is nested too deeply; give a file that OSProfiler or a collector wrote"
        ) from None
    members = [one.keys() if isinstance(one, dict) else () for one in documents]
    is_otlp = all(map(_SIGNALS.intersection, members))
    if is_otlp and any("resourceSpans" in names for names in members):
        return OtlpSpans(documents, everything=everything, skipped=bad)
    if members and all(isinstance(one, dict) and _is_report(one) for one in documents):
        return OsprofilerReports(documents, everything=everything, skipped=bad)
    if bad:
        raise UsageError(
            f"{path} is not JSON with traces: {count(bad, 'line')} could not be read; give "
            "complete lines of OTLP in JSON"
        )
    raise UsageError(
        f"{path} is JSON without traces; give OTLP in JSON, or the JSON of `osprofiler trace show "
        "--json`"
    )


def _is_report(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("children"), list)


def _documents(text: str) -> tuple[list[Any], int]:
    """Return the JSON documents in a text, and the number of lines that could not be read.

    The text is one document, a list of them, or has one per line. Raises ValueError
    if there is none.
    """
    try:
        whole = read_json(text)
    except ValueError:
        found, bad = [], 0
        # only newlines: strings may contain other line separators
        for line in filter(str.strip, text.split("\n")):
            try:
                found.append(read_json(line))
            except ValueError:
                bad += 1
        if not found:
            raise
        return found, bad
    return (whole if isinstance(whole, list) else [whole]), 0


def merge(parts: Iterable[Trace]) -> Trace:
    """Return one trace from its parts in several sources; of duplicate spans the better is taken.

    `better` decides. The order of the parts does not matter; all have the same id. Raises
    ValueError without parts.
    """
    known: dict[str, Span] = {}
    trace_id, spans_seen, duplicates = None, 0, 0
    origins: dict[str, SpanOrigin] = {}
    for part in parts:
        origins |= part.origins
        trace_id = part.trace_id
        duplicates += part.duplicates
        for span in part.spans:
            spans_seen += 1
            other = known.setdefault(span.span_id, span)
            if other is not span:
                known[span.span_id] = better(span, other)
    if trace_id is None:
        raise ValueError("nothing to merge")
    spans = sorted(known.values(), key=lambda span: (span.start_ns, span.span_id))
    return Trace(
        trace_id=trace_id,
        spans=tuple(spans),
        duplicates=duplicates + spans_seen - len(known),
        origins=origins,
    )
