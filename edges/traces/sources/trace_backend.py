"""Reads traces by id over HTTP from where services send them: Tempo or Jaeger.

Both respond with OTLP's JSON, each in an envelope:

- Tempo, /api/v2/traces/ID (`TraceByIDResponse` of grafana/tempo, pkg/tempopb/tempo.proto): the
  member `trace`, and `status` PARTIAL if spans are missing. Older releases have /api/traces/ID
  only, with `batches` for the groups of spans. Ids are in base64.
- Jaeger, /api/v3/traces/ID (`GRPCGatewayWrapper` of jaegertracing/jaeger-idl,
  proto/api_v3/query_service.proto): the member `result`, in one or several documents.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import requests

from osbench.common.errors import UsageError
from osbench.common.files.foreign_json import TooManyValuesError, read_json_sequence
from osbench.common.network.backend_url import JAEGER, parse_backend_url
from osbench.common.network.bounded_adapter import ResponseTooLargeError
from osbench.common.network.bounded_query import (
    BoundedQueries,
    QueryBounds,
    parse_header_list,
)
from osbench.common.network.causes import root_cause
from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import plain
from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources.otlp import OtlpSpans, export_requests

#: Longest waits for a connection and for the next bytes, and for a complete response, seconds.
_CONNECT_S, _READ_S, _RESPONSE_S = 5.0, 15.0, 60.0
#: Most bytes of a response, decoded; Tempo's own limit of a trace is 5 MB.
ANSWER_BYTES = 32 << 20
#: Most values of a response; a span has about 60.
ANSWER_VALUES = 1_000_000
#: Most characters of a response that messages repeat.
_TOLD = 200
_BUSY = frozenset((429, 502, 503, 504))
_REFUSED = frozenset((401, 403, 407))
#: Response of Go's servers to a path that they do not have.
_NO_PATH = "404 page not found"


class BackendState(StrEnum):
    """Results of querying one trace.

    A later query may find a trace that is MISSING, BUSY, TIMED_OUT or UNREACHABLE.
    """

    FOUND = "found"
    #: The backend reports that it returned some of its spans only.
    PARTIAL = "partial"
    MISSING = "missing"
    TOO_LARGE = "too large"
    #: The credentials are wrong, or lacking.
    REFUSED = "refused"
    #: It may respond later.
    BUSY = "busy"
    TIMED_OUT = "timed out"
    UNREACHABLE = "unreachable"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class BackendResponse:
    """Result of querying one trace from a backend, made by `TraceBackend.ask`.

    It has a state, the spans (empty unless FOUND or PARTIAL), and a message if something is wrong.
    """

    trace_id: str
    state: BackendState
    spans: tuple[Span, ...] = ()
    #: Malformed spans.
    skipped: int = 0
    #: Message on the error; "" if there was none.
    why: str = ""


class TraceBackend:
    """A Tempo or a Jaeger, from which traces are queried over HTTP by id.

    `ask` may be called by several threads; errors are states of its result.
    """

    def __init__(self, url: str, headers: str = "", *, everything: bool = False) -> None:
        """Prepare queries; nothing is sent yet.

        `url` is `tempo+http://...` or `jaeger+http://...`; `everything` keeps all attributes.
        `headers` are name=value,name=value, percent-encoded. Raises UsageError if either is
        malformed.
        """
        kind, base = parse_backend_url(url)
        #: The URL without secrets.
        self.shown = mask_url(url)
        self.kind = kind
        self._base = base.rstrip("/")
        given = parse_header_list(headers, "[traces] query_headers")
        self._queries = BoundedQueries({"Accept": "application/json", **given})
        self._everything = everything
        #: Tempo has version 2 of its API; None as long as that is not known.
        self._second: bool | None = None

    def ask(self, trace_id: str) -> BackendResponse:
        """Query one trace by its id, 32 hexadecimal digits. Errors are states of the result.

        If Tempo does not have the trace, its older API is queried too, as long as its version is
        unknown.
        """
        if self.kind == JAEGER:
            # else Jaeger moves spans by its own guess of clocks
            return self._ask(trace_id, f"/api/v3/traces/{trace_id}?raw_traces=true")
        if self._second is False:
            return self._ask(trace_id, f"/api/traces/{trace_id}")
        response = self._ask(trace_id, f"/api/v2/traces/{trace_id}")
        if response.state is BackendState.MISSING and self._second is None:
            # an older Tempo does not have the path
            older = self._ask(trace_id, f"/api/traces/{trace_id}")
            if older.spans:
                self._second = False
            return older
        self._second = self._second or bool(response.spans)
        return response

    def check(self) -> None:
        """Query a random trace id to test the connection.

        Raises UsageError if access is denied, there is no usable response, or the server does not
        have this API. A busy server passes.
        """
        response = self.ask(secrets.token_hex(16))
        wrong = {
            BackendState.REFUSED: "set [traces] query_headers (or OS_TRACES__QUERY_HEADERS)",
            BackendState.UNREACHABLE: "look at its address, and whether it runs",
            BackendState.TIMED_OUT: "look at its address, and whether it runs",
            BackendState.FAILED: f"look at its {'log' if _is_fault(response.why) else 'address'}",
        }
        if response.state in wrong:
            raise UsageError(
                f"cannot query traces at {self.shown}: {response.why}; {wrong[response.state]}"
            )
        if response.why == _NO_PATH:
            raise UsageError(
                f"cannot query traces at {self.shown}: it does not have the API of {self.kind};"
                " its queries are usually at port 3200 (Tempo) or 16686 (Jaeger), and the URL has"
                " the path before /api, if there is one"
            )

    def _ask(self, trace_id: str, path: str) -> BackendResponse:
        try:
            status, body = self._read(self._base + path)
        except requests.Timeout:
            state, why = BackendState.TIMED_OUT, "no response in time"
        except ResponseTooLargeError:
            state, why = BackendState.TOO_LARGE, f"more than {ANSWER_BYTES >> 20} MiB"
        except (requests.RequestException, OSError, ValueError) as error:
            state, why = BackendState.UNREACHABLE, plain(mask_text(root_cause(error)), _TOLD)
        else:
            if status == 200:
                return self._answer(trace_id, body)
            state, why = _refusal(status, body)
        return BackendResponse(trace_id=trace_id, state=state, why=why)

    def _answer(self, trace_id: str, body: bytes) -> BackendResponse:
        """Return the result for the body of a response with status 200.

        FAILED if the body is not OTLP's JSON, or has an error and no span of the trace; TOO_LARGE
        beyond ANSWER_VALUES; else MISSING without spans of the trace; PARTIAL if the backend says
        so, or if there are an error and spans.
        """
        partial, why, found = False, "", []
        try:
            for document in read_json_sequence(body.decode("utf-8-sig"), ANSWER_VALUES):
                if not isinstance(document, Mapping):
                    raise ValueError("not an object")
                if isinstance(document.get("error"), Mapping):
                    partial, why = True, str(document["error"].get("message") or "an error")
                else:
                    found += export_requests(document)
                    partial = partial or document.get("status") in ("PARTIAL", 1)
        except TooManyValuesError:
            return BackendResponse(
                trace_id=trace_id,
                state=BackendState.TOO_LARGE,
                why=f"more than {ANSWER_VALUES:,} values",
            )
        except ValueError:
            return BackendResponse(
                trace_id=trace_id,
                state=BackendState.FAILED,
                why="the response is not a trace in OTLP's JSON",
            )
        source = OtlpSpans(found, everything=self._everything)
        spans = tuple(span for other, span in source.spans() if other == trace_id)
        state = BackendState.PARTIAL if partial else BackendState.FOUND
        if not spans:
            state = BackendState.FAILED if why else BackendState.MISSING
        return BackendResponse(
            trace_id=trace_id,
            state=state,
            spans=spans,
            skipped=source.skipped,
            why=plain(mask_text(why), _TOLD),
        )

    def _read(self, url: str) -> tuple[int, bytes]:
        """Send a GET request; return status and body.

        Raises ResponseTooLargeError, requests.RequestException, OSError, ValueError.
        """
        bounds = QueryBounds(
            connect_s=_CONNECT_S,
            read_s=_READ_S,
            response_s=_RESPONSE_S,
            response_bytes=ANSWER_BYTES,
        )
        return self._queries.get(url, bounds)


def _is_fault(why: str) -> bool:
    """Return whether a message of `_refusal` is of a status of the server's own faults, 5xx."""
    return why.startswith("HTTP 5")


def _refusal(status: int, body: bytes) -> tuple[BackendState, str]:
    """Return the state for a response whose status is not 200, and its message.

    404 is MISSING, with "" or `_NO_PATH` as message.
    """
    text = plain(mask_text(body[: _TOLD * 4].decode("utf-8", "replace")).strip(), _TOLD)
    if status == 404:
        return BackendState.MISSING, _NO_PATH if _NO_PATH in text else ""
    state = BackendState.FAILED
    if status in _REFUSED:
        state = BackendState.REFUSED
    elif status in _BUSY:
        state = BackendState.BUSY
    # Tempo's response to a trace above its limit; of older releases with 500
    elif status == 422 or "exceeds max size" in text:
        state = BackendState.TOO_LARGE
    return state, f"HTTP {status} {text}".strip()
