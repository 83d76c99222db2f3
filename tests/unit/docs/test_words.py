"""The word list finds its wordings in each kind of text, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from words import __main__ as words
from words.__main__ import lower, main, over_ceiling, problems, prose_problems
from words.rules import EVERYWHERE, INSIDE, PROSE_RULES, RULES, TUTORIAL_RULES, Kind
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


PROSE = """# Rows

The page says what rows cost; those of the first block are told beside it.

| rows | cost |
|---|---|
| few | nothing that is seen |

What is a row?
"""


def test_prose_of_documents_and_tutorials_is_counted(tmp_path: Path) -> None:
    page, tutorial = tmp_path / "rows.md", tmp_path / "first-run.md"
    page.write_text(PROSE, "utf-8")
    tutorial.write_text(PROSE, "utf-8")

    hits = [place.split("'")[1] for _, place in prose_problems([page])]

    assert sorted(hits) == ["beside", "nothing", "those of", "told", "what"]
    assert len(list(prose_problems([tutorial]))) == len(hits) + 1


def test_a_long_sentence_is_a_wording_and_a_list_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.md"
    path.write_text("row " * 40 + "\n\n" + "- row of a list\n" * 20, "utf-8")

    (problem,) = prose_problems([path])

    assert "a shorter sentence" in problem[1]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one page, with a ceiling of 2 wordings."""
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "CEILINGS", tmp_path / "ceilings.txt")
    (tmp_path / "ceilings.txt").write_text("page.md 2\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"), [("what what what", "at most 2"), ("what", "lower it"), ("what what", None)]
)
def test_a_file_has_as_many_wordings_as_its_ceiling(
    repository: Path, text: str, said: str | None
) -> None:
    page = repository / "page.md"
    page.write_text(f"{text}\n", "utf-8")

    problems = [problem for _, problem in over_ceiling([page])]

    assert len(problems) == (said is not None)
    assert all(str(said) in problem for problem in problems)


@pytest.mark.parametrize(("text", "ceiling"), [("what what what", 2), ("what", 1), ("rows", 0)])
def test_a_ceiling_only_sinks(repository: Path, text: str, ceiling: int) -> None:
    page = repository / "page.md"
    page.write_text(f"{text}\n", "utf-8")

    lower([page])

    expected = f"page.md {ceiling}\n" if ceiling else ""
    assert (repository / "ceilings.txt").read_text("utf-8") == expected


def test_each_rule_is_for_some_kind_and_has_advice() -> None:
    assert all(rule.better and rule.kinds for rule in (*RULES, *PROSE_RULES, *TUTORIAL_RULES))
    assert INSIDE in EVERYWHERE
