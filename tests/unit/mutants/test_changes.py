"""Changes of source: their kinds, the rest of the file, and statements that are left alone."""

from __future__ import annotations

import pytest

from mutants.changes import changed, changes_of, code_lines, is_compiled


def _changed(source: str, kind: str) -> list[str]:
    text = source.encode()
    return [changed(text, one).decode() for one in changes_of(text) if one.kind == kind]


@pytest.mark.parametrize(
    ("source", "kind", "after"),
    [
        ("a < b <= c", "comparison", ["a <= b <= c", "a < b < c"]),
        ("a is not b", "comparison", ["a is b"]),
        ("x = (a  # is in\n not  in (b))", "comparison", ["x = (a  # is in\n in (b))"]),
        ('x = "ä" == b', "comparison", ['x = "ä" != b']),
        ("f(1)", "call", ["pass"]),
        ("async def f():\n await g()", "call", ["async def f():\n pass"]),
        ("x = f()", "call", []),
        ("x = 1_000", "number", ["x = 1_001", "x = 999"]),
        ("x = 0", "number", ["x = 1"]),
        ("x = 0o600", "number", ["x = 0o601", "x = 0o577"]),
        ("x = True, 1.5, '7', f'{8}'", "number", []),
        ("x = a if b else c", "branch", ["x = a if not (b) else c"]),
        ("if (a\n or b): c", "branch", ["if (not (a\n or b)): c"]),
        ("while a: b", "branch", ["while not (a): b"]),
        ("a and (b) and c or d", "and/or", ["a and (b) and c and d", "a or (b) or c or d"]),
    ],
)  # fmt: skip
def test_a_change_replaces_nothing_else(source: str, kind: str, after: list[str]) -> None:
    assert _changed(source, kind) == after


@pytest.mark.parametrize(
    "source",
    [
        '"""A module of 1 line."""',
        "x: Literal[1, 2]",
        "def f(a: tuple[1]) -> Literal[3]: ...",
        "X = Literal[1]",
        "assert a < 1 and b",
        "LOG.info('%s', a < 1)",
        "if TYPE_CHECKING:\n import a\n f()",
        "if __name__ == '__main__':\n f()",
        "__all__ = [*(a and b)]",
        "raise ValueError(f'{a < 1}')",
    ],
)
def test_texts_types_asserts_and_logging_are_left_alone(source: str) -> None:
    assert changes_of(source.encode()) == []


def test_lines_of_code_are_those_without_texts_and_comments() -> None:
    assert code_lines(b'"""A\n\ntext."""\n\n# a comment\nx = [\n    1,\n]\n') == 2


def test_source_that_warns_does_not_count_as_compiled() -> None:
    assert is_compiled(b"x = a is b")
    assert not is_compiled(b"x = a is 1")
    assert not is_compiled(b"x = = 1")
