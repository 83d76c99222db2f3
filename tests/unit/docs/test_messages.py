"""The page of messages quotes messages as the code has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from helpers.readme import REPOSITORY, text

PAGE = "docs/messages.md"
#: Stands in a template for a part that varies, as `...` does on the page.
HOLE = "\0"
_PERCENT = re.compile(r"%(?:[-+0-9.,]*[sdgfrx])")


def quoted() -> list[str]:
    """Return the patterns in the first column of the tables of messages."""
    found = []
    for table in re.findall(r"^\| message \|.*\n\|[-|]+\n((?:\|.*\n)+)", text(PAGE), re.M):
        for row in table.splitlines():
            spans = re.findall(r"`([^`]+)`", row.split(" | ")[0])
            assert len(spans) == 1, row
            found += spans
    return found


def templates() -> Iterator[str]:
    """Yield each text of the code, with a `HOLE` for each value."""
    for folder in ("common", "coordinator", "worker", "edges"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    yield "".join(
                        part.value
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)
                        else HOLE
                        for part in node.values
                    )
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield _PERCENT.sub(HOLE, node.value)


@pytest.fixture(scope="module")
def known() -> list[str]:
    return list(templates())


def test_the_page_has_messages_of_each_kind() -> None:
    assert len(quoted()) >= 40
    assert len(set(quoted())) == len(quoted())


@pytest.mark.parametrize("pattern", quoted())
def test_a_quoted_message_is_in_the_code(pattern: str, known: list[str]) -> None:
    wanted = re.compile(HOLE.join(map(re.escape, pattern.split("..."))))

    assert any(wanted.search(one) for one in known), pattern
