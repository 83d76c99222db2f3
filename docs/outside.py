"""Links from docs/ to the rest of the repository, which built pages lack: only their text stays."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    return _OUTSIDE.sub(r"`\1`", markdown)
