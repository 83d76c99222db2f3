"""The modules that a plug-in file imports from its own folder."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from osbench.common.named_files import read_named
from osbench.common.syntax_trees import syntax_tree


def neighbours(file: Path) -> dict[str, Path]:
    """What a plug-in file imports from its folder, directly or by other such modules, by name.

    A package is named by its `__init__.py`. A name that can be imported without the plug-in's
    folder means the module that is found so, as ever.
    """
    found: dict[str, Path] = {}
    waiting = [file]
    while waiting:
        for name in imported_names(waiting.pop()):
            path = None if name in found else _beside(file, name)
            if path is not None and not _is_found_elsewhere(name):
                found[name] = path
                waiting += files_of_module(path)
    return found


def files_of_module(path: Path) -> list[Path]:
    """The files of a module: one, or those of a package that is named by its `__init__.py`."""
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]


def sources(file: Path) -> bytes:
    """The text of a plug-in file and of the modules that it imports from its folder."""
    modules = [part for path in neighbours(file).values() for part in files_of_module(path)]
    others = sorted(set(modules) - {file})
    return b"".join(read_named(one) for one in (file, *others))


def imported_names(file: Path) -> frozenset[str]:
    """Top-level names that a file imports; none where it is not valid Python."""
    try:
        return frozenset(_named(syntax_tree(read_named(file))))
    except (OSError, SyntaxError, ValueError):
        return frozenset()


def _beside(file: Path, name: str) -> Path | None:
    for path in (file.parent / name / "__init__.py", file.with_name(f"{name}.py")):
        if path.is_file():
            return path
    return None


def _is_found_elsewhere(name: str) -> bool:
    """Whether a name can be imported without the folders of plug-ins."""
    finders = [one for one in sys.meta_path if not hasattr(one, "of_plugins")]
    return any(one.find_spec(name, None) is not None for one in finders)


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
