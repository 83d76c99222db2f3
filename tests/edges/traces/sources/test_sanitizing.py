"""Spans whose texts, numbers and nesting cannot be stored as they are."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources.sanitizing import sanitize_span

SPAN = Span(span_id="a", parent_id="b", name="c", service="d", host="e", start_ns=1, duration_ns=2)


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"in": [value]}
    return {"in": value}


@pytest.mark.parametrize(
    "field", ["span_id", "parent_id", "name", "service", "host", "detail", "error"]
)
def test_a_text_that_utf_8_cannot_encode_is_replaced_alone(field: str) -> None:
    span = sanitize_span(SPAN._replace(**{field: "é\ud800"}))

    assert span == SPAN._replace(**{field: "é?"})


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        (2**64 - 1, 2**64 - 1),
        (2**64, str(2**64)),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, str(-(2**63) - 1)),
    ],
)
def test_an_integer_beyond_64_bits_is_text(number: int, kept: int | str) -> None:
    span = sanitize_span(SPAN._replace(attributes={"n": [number], "\ud800": 0}))

    assert span.attributes == {"n": [kept], "?": 0}
    msgpack.packb(span.attributes)


def test_values_are_kept_to_32_levels() -> None:
    kept = _nested(16)

    assert sanitize_span(SPAN._replace(attributes=kept)).attributes == kept
    cut = str(sanitize_span(SPAN._replace(attributes=_nested(17))).attributes)
    assert cut == str(_nested(16)).replace("1", "'...'")
