"""Plug-in files: divides a plug-in path into files for osbench and files for Rally."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osbench.common.plugin.loading.neighbours import imported_names

#: Packages whose import marks a file as Rally's, and the one that marks it as osbench's.
RALLY = frozenset(("rally", "rally_openstack"))
OURS = "osbench"


def divide(path: str, files: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The `files` under `path` that osbench imports, and the paths that Rally loads.

    A file that imports Rally and not osbench is Rally's. A folder in which no file imports
    osbench is Rally's as a whole, because its plug-ins may import the files next to them.
    """
    imported = {file: imported_names(file) for file in files}
    of_rally = [file for file, names in imported.items() if names & RALLY and OURS not in names]
    if of_rally and not any(OURS in names for names in imported.values()):
        return [], [path]
    return [file for file in files if file not in of_rally], [str(file) for file in of_rally]
