"""Text of runs in Markdown, such as comments on a code change."""

from __future__ import annotations

from osbench.coordinator.formatting import plain

#: Characters with a meaning in Markdown; some of them only their HTML code takes away.
_SIGNS, _BY_CODE = "\\`*_[]#<>|@", "<>@"
_LONGEST = 1000


def markdown_text(text: str) -> str:
    """Return the first line of a text, escaped: Markdown shows no formatting or links of it."""
    safe = plain(text, _LONGEST)
    for sign in _SIGNS:
        safe = safe.replace(sign, f"&#{ord(sign)};" if sign in _BY_CODE else f"\\{sign}")
    return safe
