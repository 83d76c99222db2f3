"""Texts as cells of CSV, harmless in a spreadsheet and on a terminal."""

from __future__ import annotations

import functools
import re

#: First characters that make a spreadsheet treat a cell as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\n")

#: Control characters, except tab and line breaks: terminals obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@functools.lru_cache(4096)
def cell(text: str) -> str:
    """`text` with an apostrophe before what would be a formula; spreadsheets do not show it.

    Kept for a while: the same few texts stand in most rows.
    """
    # a carriage return alone ends the line for some readers, and csv does not quote it
    shown = _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return f"'{shown}" if shown.startswith(FORMULA) else shown
