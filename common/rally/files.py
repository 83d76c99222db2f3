"""Plug-in files: which of those that a plug-in path names are Rally's to load."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

#: Packages whose import makes a file one of Rally's, and the one that makes it ours.
RALLY = frozenset(("rally", "rally_openstack"))
OURS = "osbench"


def divide(path: str, files: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The `files` under `path` that are ours to import, and what Rally is to load.

    A file that imports Rally, and osbench nowhere, is Rally's. A folder of which no file imports
    osbench is Rally's as a whole, since its plug-ins may import the files beside them.
    """
    imported = {file: _imports(file) for file in files}
    of_rally = [file for file, names in imported.items() if names & RALLY and OURS not in names]
    if of_rally and not any(OURS in names for names in imported.values()):
        return [], [path]
    return [file for file in files if file not in of_rally], [str(file) for file in of_rally]


def _imports(file: Path) -> frozenset[str]:
    """First parts of the names of modules that a file imports; none where it is no Python."""
    try:
        return frozenset(_named(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return frozenset()


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
