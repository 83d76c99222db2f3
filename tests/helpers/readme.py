"""What tests take from documents: commands in blocks marked `<!-- test: STORY [server] -->`, and
files in blocks marked `<!-- file: PATH -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?:<!-- test: (\S+)( server)? -->\n)?```sh\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Commands as a document has them."""

    #: What the block belongs to; blocks of a story are run in order. Empty: no test runs it.
    story: str
    #: It runs until it is interrupted, in a separate terminal.
    server: bool
    text: str


def text(document: str) -> str:
    """A document as it is."""
    return (REPOSITORY / document).read_text(encoding="utf-8")


def blocks(story: str | None = None, document: str = "README.md") -> list[Block]:
    """The shell blocks of a story, or all of them, in their order."""
    found = [
        Block(story=name or "", server=bool(server), text=body)
        for name, server, body in _FENCE.findall(text(document))
    ]
    return [block for block in found if story is None or block.story == story]


def files(document: str) -> dict[str, str]:
    """The files that a document shows whole, by path."""
    return dict(_FILE.findall(text(document)))
