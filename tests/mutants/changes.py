"""Small changes of Python source: a comparison turned, a call left out, a constant off by one.

Positions are those of `ast`. A change replaces the bytes between two of them, so that the rest of
the file keeps its bytes. Strings, annotations, asserts and log messages are not changed.

Two libraries were looked at. Neither cosmic-ray 8.7 nor mutmut 3.8 leaves statements out, and
neither knows log messages. mutmut's operators belong to a command that rewrites every function.
cosmic-ray names a change by the number of its operator's occurrence, adds a space before some, and
installs a web client, a database layer and a git client.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

#: The operator that takes the place of another.
TURNED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
#: Receivers of calls that only write to the log.
LOGGERS = ("LOG", "_LOG")
_OPERATOR = re.compile(rb"<=|>=|==|!=|<|>|\bis\s+not\b|\bnot\s+in\b|\bis\b|\bin\b")
_JUNCTION = re.compile(rb"\b(and|or)\b")
_COMMENT = re.compile(rb"#[^\n]*")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A replacement of the bytes from `start` to `end`; kinds are those of `KINDS`."""

    kind: str
    start: int
    end: int
    after: bytes


class _Source:
    """Source and the positions of its nodes, in bytes."""

    def __init__(self, source: bytes) -> None:
        self.bytes = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> bytes:
        return self.bytes[self.start(node) : self.end(node)]

    def between(self, left: ast.expr, right: ast.expr, wanted: re.Pattern[bytes]) -> range:
        """Return the place of an operator between two operands."""
        begin = self.end(left)
        gap = self.bytes[begin : self.start(right)]
        gap = _COMMENT.sub(lambda comment: b" " * len(comment[0]), gap)
        found = wanted.search(gap)
        assert found is not None, gap
        return range(begin + found.start(), begin + found.end())


def changes_of(text: bytes) -> list[Change]:
    """Return all changes of a module, in the order of their kinds.

    Raises SyntaxError if the source does not compile.
    """
    source = _Source(text)
    nodes = list(_changeable(ast.parse(text)))
    return [change for find in KINDS.values() for node in nodes for change in find(source, node)]


def changed(text: bytes, change: Change) -> bytes:
    """Return a module with a change."""
    return text[: change.start] + change.after + text[change.end :]


def code_lines(text: bytes) -> int:
    """Return the number of lines with code: no blank lines, comments and docstrings."""
    lines = {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt | ast.expr) and not _is_text(node)
    }
    return len(lines)


def is_compiled(text: bytes) -> bool:
    """Report whether source compiles without a warning."""
    with warnings.catch_warnings():
        # as in `x is not 1`: tests treat it as an error before any of them runs
        warnings.simplefilter("error")
        try:
            compile(text, "mutant", "exec")
        except (SyntaxError, ValueError, Warning):
            return False
    return True


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _changeable(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through nodes in the order of the source, without texts, types, asserts and logging."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield from _changeable(child)


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case (
            ast.Assert()
            | ast.JoinedStr()
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.If(test=ast.Compare(left=ast.Name(id="__name__")))
            | ast.Subscript(value=ast.Name(id="Literal"))
            | ast.Assign(targets=[ast.Name(id="__all__")])
        ):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGERS
    return _is_text(node)


def _comparisons(source: _Source, node: ast.AST) -> Iterable[Change]:
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for (left, right), operator in zip(pairwise(operands), node.ops, strict=True):
        place = source.between(left, right, _OPERATOR)
        after = TURNED[type(operator)].encode()
        yield Change(kind="comparison", start=place.start, end=place.stop, after=after)


def _calls(source: _Source, node: ast.AST) -> Iterable[Change]:
    if not isinstance(node, ast.Expr):
        return
    called = node.value.value if isinstance(node.value, ast.Await) else node.value
    if isinstance(called, ast.Call):
        yield Change(kind="call", start=source.start(node), end=source.end(node), after=b"pass")


def _numbers(source: _Source, node: ast.AST) -> Iterable[Change]:
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        return
    written = source.text(node)
    base = written[:2].lower()
    for by in (1, -1) if node.value else (1,):
        value = node.value + by
        if base in (b"0x", b"0o", b"0b"):
            after = format(value, "#" + base[1:].decode())
        else:
            after = format(value, "_" if b"_" in written else "d")
        yield Change(
            kind="number", start=source.start(node), end=source.end(node), after=after.encode()
        )


def _branches(source: _Source, node: ast.AST) -> Iterable[Change]:
    if not isinstance(node, ast.If | ast.While | ast.IfExp):
        return
    test = node.test
    after = b"not (" + source.text(test) + b")"
    yield Change(kind="branch", start=source.start(test), end=source.end(test), after=after)


def _junctions(source: _Source, node: ast.AST) -> Iterable[Change]:
    if not isinstance(node, ast.BoolOp):
        return
    word = b"or" if isinstance(node.op, ast.And) else b"and"
    start, end = source.start(node), source.end(node)
    after, begin = b"", start
    for left, right in pairwise(node.values):
        place = source.between(left, right, _JUNCTION)
        after += source.bytes[begin : place.start] + word
        begin = place.stop
    yield Change(kind="and/or", start=start, end=end, after=after + source.bytes[begin:end])


#: Kinds of changes, each with the function that finds them at a node.
KINDS = {
    "comparison": _comparisons,
    "call": _calls,
    "number": _numbers,
    "branch": _branches,
    "and/or": _junctions,
}
