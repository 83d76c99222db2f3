"""Makes texts into cells of CSV, harmless in a spreadsheet and on a terminal."""

from __future__ import annotations

import functools

from osbench.common.text.escaping import escaped

#: First characters that make a spreadsheet treat a cell as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\n")


@functools.lru_cache(4096)
def cell(text: str) -> str:
    """Return `text` safe for a cell: control characters escaped, an apostrophe before a formula.

    Spreadsheets do not show the apostrophe. Cached, because the same few texts are in most rows.
    """
    # a carriage return alone ends the line for some readers, and csv does not quote it
    shown = escaped(text.replace("\r\n", "\n").replace("\r", "\n"), breaks=True)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
