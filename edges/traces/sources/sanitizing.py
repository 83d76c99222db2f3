"""Makes spans of services storable, so that one unusual value does not make a run unreadable.

JSON may contain lone surrogates, which cannot be encoded, integers of any size, and deeply nested
lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.edges.traces.model.spans import Span

_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
#: Deepest nesting of an attribute's value; MessagePack supports 511 levels.
_LEVELS = 32


def sanitize_text(text: str) -> str:
    """Return a text with `?` for each character that UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def sanitize_span(span: Span) -> Span:
    """Return a span that can be stored as MessagePack.

    Characters that UTF-8 cannot encode become `?`, integers beyond 64 bits become text, and values
    nested deeper than `_LEVELS` become "...".
    """
    attributes = span.attributes
    if attributes:
        span = span._replace(attributes=_clean_members(attributes, _LEVELS))
    texts = (*span[:5], span.detail, span.kind, span.error)
    # one check of all of them: nearly all spans are ASCII
    if "".join(texts).isascii():
        return span
    return span._replace(
        span_id=sanitize_text(span.span_id),
        parent_id=sanitize_text(span.parent_id),
        name=sanitize_text(span.name),
        service=sanitize_text(span.service),
        host=sanitize_text(span.host),
        detail=sanitize_text(span.detail),
        error=sanitize_text(span.error),
    )


def _clean(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return sanitize_text(value)
    if isinstance(value, int):
        return value if _LOWEST <= value <= _HIGHEST else str(value)
    if isinstance(value, dict | list) and not levels:
        return "..."
    if isinstance(value, dict):
        return _clean_members(value, levels - 1)
    if isinstance(value, list):
        return [_clean(one, levels - 1) for one in value]
    return value


def _clean_members(members: Mapping[str, Any], levels: int) -> dict[str, Any]:
    return {sanitize_text(name): _clean(value, levels) for name, value in members.items()}
