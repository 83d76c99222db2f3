"""Python text as a syntax tree, also with an interpreter that loses count of its depth.

CPython before 3.11.8 has one counter for all trees that are being made. If a finalizer formats a
traceback meanwhile, that makes another tree, and the outer one fails with SystemError
(https://github.com/python/cpython/issues/106905).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Attempts at one tree: that two collections in a row break it has not been seen.
_ATTEMPTS = 5


def syntax_tree(source: str | bytes, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a module. Raises SyntaxError, and ValueError for a null byte."""
    return _again(lambda: ast.parse(source, file))


def first_line(cls: type) -> int:
    """Return the line at which a class begins. Raises OSError and TypeError if no text is found."""
    return _again(lambda: inspect.getsourcelines(cls)[1])


def _again(make: Callable[[], T]) -> T:
    for _ in range(_ATTEMPTS - 1):
        try:
            return make()
        except SystemError:
            continue
    return make()
