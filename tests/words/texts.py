"""Finds the sentences of the project: docstrings, comments, messages and documents."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from words.rules import Kind

#: A string of fewer words is a key, a name, or a part of a pattern.
_MESSAGE_WORDS = 4
_FENCE = re.compile(r"^ *(```|~~~)")
_CODE = re.compile(r"(`+).+?\1|\]\([^)]*\)|<!--.*?-->", re.DOTALL)

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Text:
    """A text, its kind, and the line of its file where it begins."""

    kind: Kind
    line: int
    words: str


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the texts of a Python or Markdown file."""
    source = path.read_text(encoding="utf-8")
    yield from _python(source) if path.suffix == ".py" else _document(source)


def _python(source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value): node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, _Documented) and ast.get_docstring(node) is not None
        if isinstance(node.body[0], ast.Expr)
    }
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if id(node) in docstrings:
            assert isinstance(node, ast.Constant)
            yield Text(Kind.DOCSTRING, node.lineno, _joined(str(node.value)))
        elif isinstance(node, ast.JoinedStr):
            yield from _message(node.lineno, _format(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _message(node.lineno, "" if id(node) in parts else node.value)
    yield from _comments(source)


def _format(node: ast.JoinedStr) -> str:
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
    )


def _message(line: int, value: str) -> Iterator[Text]:
    if len(value.split(" ")) >= _MESSAGE_WORDS:
        yield Text(Kind.MESSAGE, line, _joined(value))


def _comments(source: str) -> Iterator[Text]:
    """Yield comments; lines that follow each other are one comment."""
    begun, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and lines:
            yield Text(Kind.COMMENT, begun, _joined(" ".join(lines)))
            lines = []
        if not lines:
            begun = token.start[0]
        last = token.start[0]
        lines.append(token.string.lstrip("#: "))
    if lines:
        yield Text(Kind.COMMENT, begun, _joined(" ".join(lines)))


def _document(source: str) -> Iterator[Text]:
    """Yield the paragraphs of a Markdown document, without code and addresses."""
    begun, lines, fenced = 1, list[str](), False
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif line.strip():
            if not lines:
                begun = number
            lines.append(line)
            continue
        if lines:
            yield Text(Kind.DOCUMENT, begun, _joined("\n".join(lines)))
            lines = []


def _joined(text: str) -> str:
    """Return a text in one line, with "CODE" for each inline code."""
    return " ".join(_CODE.sub("CODE", text).split())
