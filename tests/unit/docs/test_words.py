"""The word list finds its wordings in each kind of text, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from words.__main__ import main, problems
from words.rules import EVERYWHERE, INSIDE, RULES, Kind
from words.texts import texts_of

PYTHON = '''"""A module of rows."""

import os

# where it fails, the row stays

LIMIT = 3  # rows a second


class Rows:
    """What is left of some rows."""

    def size(self, rows):
        """Return the size; None where there is none."""
        raise ValueError(f"{rows} is no list of rows: give one in place of it")
'''
MARKDOWN = """# Rows

Many rows a second are
counted in place of bytes.

```sh
echo "in place of code"
```

Use `rows in place of` and [a link](in place of).
"""


@pytest.fixture
def found(tmp_path: Path):
    """The wordings found in a file of some name, as line and kind of advice."""

    def read(name: str, text: str) -> list[str]:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return [place.removeprefix(f"{path}:") for _, place in problems([path])]

    return read


def test_python_is_read_by_docstring_comment_and_message(found) -> None:
    places = {(place.split(":")[0], place.split("'")[1]) for place in found("rows.py", PYTHON)}

    assert places == {
        ("5", "where it"),
        ("7", "rows a second"),
        ("11", "What"),
        ("14", "None where"),
        ("15", "in place of"),
        ("15", "is no "),
    }


def test_markdown_is_read_without_code_and_addresses(found) -> None:
    places = [(place.split(":")[0], place.split("'")[1]) for place in found("rows.md", MARKDOWN)]

    assert sorted(places) == [("3", "in place of"), ("3", "rows a second")]


def test_a_file_without_such_words_passes(tmp_path: Path, capsys) -> None:
    path = tmp_path / "fine.py"
    path.write_text('"""Counts rows, and reports bytes per second."""\n', "utf-8")

    assert main([str(path)]) == 0
    assert capsys.readouterr().out == ""
    path.write_text('"""Those that are counted."""\n', "utf-8")
    assert main([str(path)]) == 1
    assert "wordings to mend" in capsys.readouterr().out


def test_comments_that_follow_each_other_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.py"
    path.write_text("#: Rows in place\n#: of bytes.\nROWS = 1\n", "utf-8")

    (comment,) = texts_of(path)

    assert comment.words == "Rows in place of bytes."
    assert comment.kind == Kind.COMMENT


def test_each_rule_is_for_some_kind_and_has_advice() -> None:
    assert all(rule.better and rule.kinds for rule in RULES)
    assert INSIDE in EVERYWHERE
