"""Spans of osbench's own workers, as result blocks carry them (`Block.spans`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.protocol.unpacking import unpack
from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources.attributes import of_osprofiler
from osbench.edges.traces.sources.sanitizing import sanitize_span

#: Name of the service that they are of, as in OSProfiler's store.
SERVICE = "osbench/worker"
#: Exceptions from spans of another shape.
_WRONG = (TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def worker_spans(packed: Any, *, everything: bool) -> Iterator[tuple[bytes, Span]]:
    """Yield the spans of a result block with their trace ids (16 bytes).

    Ends without an error at the first malformed span. `everything` keeps all attributes.
    """
    try:
        host, traces = unpack(packed)
        for trace_id, front, zero, spans in traces:
            for number, parent, name, start_ns, duration_ns, info in spans:
                kept = of_osprofiler(_info(info), everything=everything)
                yield (
                    trace_id,
                    sanitize_span(
                        Span(
                            _span_id(front, zero + number),
                            _span_id(front, zero + parent) if parent >= 0 else "",
                            name,
                            SERVICE,
                            host,
                            start_ns,
                            max(duration_ns, 0),
                            kept.detail,
                            "",
                            kept.error,
                            0,
                            kept.attributes,
                        )
                    ),
                )
    except _WRONG:
        return


def _span_id(front: bytes, number: int) -> str:
    return f"{front.hex()}{number:012x}"


def _info(text: str) -> Mapping[str, Any]:
    """Return the attributes of a span; {} for "".

    `text` is the inside of a JSON object with a comma before each member. Raises ValueError if it
    is malformed.
    """
    if not text:
        return {}
    found: dict[str, Any] = json.loads(f"{{{text[1:]}}}")
    return found
