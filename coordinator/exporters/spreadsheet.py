"""Texts as cells of CSV, harmless in a spreadsheet and on a terminal."""

from __future__ import annotations

import re

#: First characters that make a spreadsheet treat a cell as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

#: Control characters, except tab and line breaks: terminals obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def cell(text: str) -> str:
    """`text` with an apostrophe before what would be a formula; spreadsheets do not show it."""
    shown = _CONTROL.sub("\ufffd", text)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
