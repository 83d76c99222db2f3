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
    """Return the syntax tree of a module; tries again after the SystemError of CPython.

    Raises SyntaxError, ValueError for a null byte, and SystemError after five attempts. `file` is
    the name shown in a SyntaxError.
    """
    return _again(lambda: ast.parse(source, file))


def first_line(cls: type) -> int:
    """Return the line number of a class in its file, with its decorators; from 1.

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
