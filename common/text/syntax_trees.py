"""Syntax trees of Python source, also with interpreters that lose count of the nesting depth.

CPython before 3.11.8 has one counter for all trees under construction. If a finalizer formats a
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
    """Parse Python source and return its tree; up to five attempts at CPython's SystemError.

    Raises SyntaxError, which names `file`, ValueError for a null byte, and SystemError after the
    last attempt.
    """
    return _again(lambda: ast.parse(source, file))


def first_line(cls: type) -> int:
    """Return the line in its file at which a class begins, decorators included; lines count from 1.

    Raises OSError or TypeError if its source is not found.
    """
    return _again(lambda: inspect.getsourcelines(cls)[1])


def _again(make: Callable[[], T]) -> T:
    for _ in range(_ATTEMPTS - 1):
        try:
            return make()
        except SystemError:
            continue
    return make()
