"""Executes a plug-in file: a class whose definition fails is left out, the others stay."""

from __future__ import annotations

import ast
from types import TracebackType
from typing import Any, NamedTuple

from osbench.common.text.syntax_trees import syntax_tree

#: Name under which the guard stands in the file while it runs.
_GUARD = "__osbench_guard__"


class ClassFault(NamedTuple):
    """A top-level class of a plug-in file whose definition raised `error`."""

    name: str
    error: Exception
    #: Its text as Python reads it.
    node: ast.ClassDef


def execute(source: bytes, file: str, namespace: dict[str, Any]) -> list[ClassFault]:
    """Execute the source of a plug-in file in `namespace`; return classes whose definition failed.

    The other definitions stay. Classes that fail only because they use a failed class are not
    returned. Raises SyntaxError, and the exceptions of the rest of the file.
    """
    tree = syntax_tree(source, file)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    tree.body = [
        _guarded_class(node) if isinstance(node, ast.ClassDef) else node for node in tree.body
    ]
    found: dict[str, Exception] = {}
    namespace[_GUARD] = lambda name: _Guard(name, found)
    try:
        # compiled here and not by a loader: a cached .pyc may be older than the hashed text
        code = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
        exec(code, namespace)  # noqa: S102 - a plug-in is code
    finally:
        namespace.pop(_GUARD, None)
    return [
        ClassFault(name, error, classes[name])
        for name, error in found.items()
        if not (isinstance(error, NameError) and error.name in found)
    ]


def _guarded_class(node: ast.ClassDef) -> ast.stmt:
    call = ast.Call(ast.Name(_GUARD, ast.Load()), [ast.Constant(node.name)], [])
    guarded = ast.With(items=[ast.withitem(context_expr=call)], body=[node])
    return ast.copy_location(guarded, node)


class _Guard:
    def __init__(self, name: str, found: dict[str, Exception]) -> None:
        self._name = name
        self._found = found

    def __enter__(self) -> None:
        """Do nothing at the beginning of the block that defines the class."""

    def __exit__(
        self,
        etype: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._found[self._name] = error
        return True
