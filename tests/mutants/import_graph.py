"""The import graph of product and tests, and the tests that are nearest to a module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from mutants.mutant import FOLDERS, product_modules

#: Folders of tests that start no whole run.
UNITS = ("tests/unit", "tests/edges", "tests/property", "tests/contract")
#: Length of a chain of imports that does not exist.
FAR = 1000
#: Most files of tests that are near a module.
MOST_FILES = 60


class ImportGraph:
    """Modules of the product and of the tests, each with the modules that import it."""

    def __init__(self, root: Path) -> None:
        paths = [*product_modules(root), *_test_modules(root)]
        self._names = {path: module_name(path) for path in paths}
        known = set(self._names.values())
        self._importers: dict[str, set[str]] = {name: set() for name in known}
        for path, name in self._names.items():
            for imported in imports(ast.parse((root / path).read_bytes()), known):
                self._importers[imported].add(name)

    def distances(self, path: str) -> dict[str, int]:
        """Return the files that import a module, each with the length of the shortest chain."""
        found = {self._names[path]: 0}
        nearest = [self._names[path]]
        while nearest:
            before, nearest = nearest, []
            for name in before:
                for importer in self._importers[name] - found.keys():
                    found[importer] = found[name] + 1
                    nearest.append(importer)
        return {path: found[name] for path, name in self._names.items() if name in found}

    def near_tests(self, path: str, most: int = MOST_FILES) -> list[str]:
        """Return files of unit, property and contract tests that import a module, nearest first.

        The file of its name comes first, then direct imports and tests of its folder, then chains
        of imports by their length. Tests of its folder count even if nothing imports the module:
        entry points of setup.cfg do not show in imports.
        """
        mirrored = mirrored_test(path)
        distances = self.distances(path)
        ranks = {}
        for file in map(PurePosixPath, self._names):
            is_beside = file.is_relative_to(mirrored.parent)
            distance = distances.get(str(file), FAR)
            if (
                file.name.startswith("test_")
                and any(file.is_relative_to(unit) for unit in UNITS)
                and (is_beside or distance < FAR)
            ):
                rank = (file != mirrored, distance > 1 and not is_beside, distance, str(file))
                ranks[str(file)] = rank
        return sorted(ranks, key=ranks.__getitem__)[:most]


def module_name(path: str) -> str:
    """Return the name by which product and tests import a file."""
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    if parts[0] == "src":
        parts.pop(0)
    elif parts[0] in FOLDERS:
        parts.insert(0, "osbench")
    elif parts[:2] == ["tests", "lab"]:
        del parts[:2]
    else:
        parts.pop(0)
    return ".".join(parts)


def mirrored_test(path: str) -> PurePosixPath:
    """Return the file of tests that has the name of a module; it need not exist."""
    module = PurePosixPath(path.removeprefix("src/osbench/"))
    units = PurePosixPath("tests" if module.parts[0] == "edges" else "tests/unit")
    return units / module.parent / f"test_{module.stem}.py"


def imports(tree: ast.AST, known: set[str]) -> set[str]:
    """Return the modules of `known` that a module imports, with the packages that hold them."""
    found: set[str] = set()
    for name in _imported_names(tree):
        parts = name.split(".")
        found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return found & known


def _imported_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from (f"{module}.{alias.name}" for alias in names)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
    for child in ast.iter_child_nodes(node):
        yield from _imported_names(child)


def _test_modules(root: Path) -> Iterable[str]:
    return (str(path.relative_to(root)) for path in sorted((root / "tests").rglob("*.py")))
