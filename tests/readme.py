"""The commands in documents that tests run: blocks marked `<!-- test: STORY [server] -->`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

_FENCE = re.compile(r"^(?:<!-- test: (\S+)( server)? -->\n)?```sh\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Commands as a document has them."""

    #: What the block belongs to; blocks of a story are run in order. Empty: no test runs it.
    story: str
    #: It goes on until it is interrupted, in a terminal of its own.
    server: bool
    text: str


def blocks(story: str | None = None, document: str = "README.md") -> list[Block]:
    """The shell blocks of a story, or all of them, in their order."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    found = [
        Block(story=name or "", server=bool(server), text=body)
        for name, server, body in _FENCE.findall(text)
    ]
    return [block for block in found if story is None or block.story == story]
