"""Parses export requests of OTLP: stores the spans of the run, and counts all others."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from osbench.common.files.foreign_json import read_json
from osbench.common.text.plain_paths import short_text
from osbench.common.values.trace_mark import TraceMark
from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources.otlp import OtlpSpans
from osbench.edges.traces.sources.otlp_protobuf import RequestSpans, run_spans
from osbench.edges.traces.sources.span_spool import SpanSpool

#: Largest request, decompressed, bytes. SDKs send up to 512 spans at once, collectors 8,192.
LARGEST = 64 << 20
#: Most values of a request in JSON; a span has about 60.
_VALUES = 2_000_000
_GZIP = 16 + zlib.MAX_WBITS
#: Characters of ids in JSON.
_TRACE_ID, _SPAN_ID = 32, 16


@dataclass(kw_only=True)
class ReceivedCounts:
    """Counts of spans and requests that a receiver got: stored, or refused, by reason."""

    #: Spans of the run that were stored.
    accepted: int = 0
    #: Spans of other traces: of requests that osbench has not made or not traced.
    strangers: int = 0
    #: Spans without a valid id or time; and requests that could not be read.
    malformed: int = 0
    malformed_requests: int = 0
    #: Spans of the run, refused because the spool was full or could not be written.
    refused: int = 0
    #: Spans of the run, received when its traces were being read already.
    late: int = 0
    #: Requests refused with 429, which SDKs send again; without a valid token; of other signals.
    deferred_requests: int = 0
    unauthorized_requests: int = 0
    other_signals: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name of their field, for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """Spans of one request that were not stored: their number (0 if all were), and the reason."""

    spans: int = 0
    reason: str = ""


class SpanIntake:
    """Stores the spans of a run in a spool file until its size limit, and counts all others.

    Not thread-safe: one thread calls it.
    """

    def __init__(self, run_id: str, path: Path, limit_bytes: int, *, everything: bool) -> None:
        """Open the spool at `path` and continue the counts of an earlier receiver of this run.

        The counts are in a file next to it, .json. The spool is full at `limit_bytes`. `everything`
        keeps all attributes. Raises OSError if the spool cannot be opened.
        """
        self._mark = TraceMark(run_id)
        self._everything = everything
        self._counts_file = path.with_suffix(".json")
        self.counts = _counts_in(self._counts_file)
        self._spool = SpanSpool(path, limit_bytes)
        self._stopped = False
        self._failed = ""
        self._lost = 0

    def take(self, body: bytes, *, as_json: bool, gzipped: bool) -> Rejection:
        """Parse a request, store the spans of the run and count all others.

        Returns the number of malformed spans, and of spans of the run that were not stored, with a
        reason. Spans of the run count as refused if the spool is full or has failed, and as late
        after `stop_storing`. Raises ValueError if the request cannot be read; spans read before the
        error stay stored.
        """
        counts, of_request = self.counts, RequestSpans()
        kept = lost = 0
        try:
            raw = _gunzipped_body(body) if gzipped else body
            found = (
                self._from_json(raw, of_request)
                if as_json
                else self._from_protobuf(raw, of_request)
            )
            for trace_id, span in found:
                if self._stopped or self._failed or self._spool.is_full:
                    lost += 1
                else:
                    kept += 1
                    self._keep(trace_id, span)
        except ValueError:
            counts.malformed_requests += 1
            raise
        finally:
            counts.accepted += kept
            counts.strangers += of_request.strangers
            counts.malformed += of_request.malformed
            if self._stopped:
                counts.late += lost
            else:
                counts.refused += lost
        self._note_lost()
        if lost:
            return Rejection(spans=lost + of_request.malformed, reason=self._reason)
        if of_request.malformed:
            return Rejection(spans=of_request.malformed, reason="spans with a malformed id or time")
        return Rejection()

    def flush(self) -> None:
        """Write waiting spans and the counts to their files, so that a resumed run finds them.

        An error becomes `failure`; it is not raised.
        """
        try:
            self._spool.flush()
            self._counts_file.write_text(json.dumps(self.counts.to_dict()), "utf-8")
        except OSError as error:
            self._failed = error.strerror or str(error)
        self._note_lost()

    def stop_storing(self) -> None:
        """Flush, then store no further spans: from now on they count as late."""
        self.flush()
        self._stopped = True

    @property
    def failure(self) -> str:
        """Reason why the spool or its counts could not be written; "" if they could."""
        return self._failed

    @property
    def _reason(self) -> str:
        if self._stopped:
            return "the run has ended, and its traces are being read"
        if self._failed:
            return f"spans cannot be written: {self._failed}"
        return "spans of this run have reached [traces] otlp_limit_mib"

    def _keep(self, trace_id: bytes, span: Span) -> None:
        try:
            self._spool.add(trace_id, span)
        except OSError as error:
            self._failed = error.strerror or str(error)

    def _note_lost(self) -> None:
        """Move accepted spans that could not be written to the spool to the refused ones."""
        lost, self._lost = self._spool.lost - self._lost, self._spool.lost
        self.counts.accepted -= lost
        self.counts.refused += lost

    def _from_protobuf(self, raw: bytes, counts: RequestSpans) -> Iterator[tuple[bytes, Span]]:
        return run_spans(raw, self._mark, counts, everything=self._everything)

    def _from_json(self, raw: bytes, counts: RequestSpans) -> Iterator[tuple[bytes, Span]]:
        document: Any = read_json(raw, _VALUES)
        if not isinstance(document, dict):
            raise ValueError("not an ExportTraceServiceRequest")
        source = OtlpSpans([document], everything=self._everything)
        for trace_id, span in source.spans():
            lengths = len(trace_id), len(span.span_id), len(span.parent_id) or _SPAN_ID
            if lengths != (_TRACE_ID, _SPAN_ID, _SPAN_ID):
                counts.malformed += 1
                continue
            try:
                own = bytes.fromhex(trace_id)
                bytes.fromhex(span.span_id + span.parent_id)
            except ValueError:
                counts.malformed += 1
                continue
            if not self._mark.is_on(own):
                counts.strangers += 1
                continue
            yield own, span._replace(service=short_text(span.service), host=short_text(span.host))
        counts.malformed += source.skipped


def _counts_in(path: Path) -> ReceivedCounts:
    """Return the counts that an earlier receiver of the run has stored in the file `path`.

    Zeros if there is no such file, or it cannot be read.
    """
    try:
        return ReceivedCounts(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return ReceivedCounts()


def _gunzipped_body(body: bytes) -> bytes:
    """Return the content of a gzip body.

    Raises ValueError if it is not gzip, incomplete, or larger than `LARGEST` bytes decompressed.
    """
    unpacker = zlib.decompressobj(_GZIP)
    try:
        content = unpacker.decompress(body, LARGEST)
    except zlib.error as error:
        raise ValueError(
            f"the body is not gzip, as its Content-Encoding says ({error}); send gzip, or leave "
            "out that header"
        ) from None
    if unpacker.unconsumed_tail:
        raise ValueError(
            f"larger than {LARGEST >> 20} MiB when decompressed; send fewer spans at once"
        )
    if not unpacker.eof:
        raise ValueError("cut off within gzip")
    return content
