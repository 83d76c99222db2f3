"""Counts the lines of osbench, and how many of them must be read to follow a run.

    python docs/house.py

Counts lines of the core and of each edge, and the closure of imports, also of those inside
functions, of `osbench-coord run --url`: from its command, the life of a run, the worker, an HTTP
scenario, three runners, three criteria and the HTML report.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Folders of the product, and how they are imported.
FOLDERS = {
    "common": "osbench.common",
    "coordinator": "osbench.coordinator",
    "worker": "osbench.worker",
    "edges": "osbench.edges",
    "src/osbench/plugin": "osbench.plugin",
}
#: Ends of the names of the modules from which a run with `--url` is followed.
ROOTS = (
    "coordinator.main",
    "commands.run",
    "run.lifecycle",
    "worker.main",
    "scenarios.http_requests",
    "runners.constant",
    "runners.rps",
    "runners.stages",
    "sla.failure_rate",
    "sla.percentile",
    "sla.throughput",
    "report.html_exporter",
)


class House:
    """The modules of the product by name, their lines, and the modules that each imports."""

    def __init__(self, root: Path = ROOT) -> None:
        self.paths = dict(_modules(root))
        self.lines = {
            name: len(path.read_bytes().splitlines()) for name, path in self.paths.items()
        }
        self.imports = {name: self._imports(name) for name in self.paths}

    def _imports(self, name: str) -> set[str]:
        tree = ast.parse(self.paths[name].read_bytes())
        found: set[str] = set()
        for module, alias in _imported(tree):
            inner = f"{module}.{alias}"
            found.add(inner if inner in self.paths else module)
        return (found & self.paths.keys()) - {name}

    def closure(self, roots: Iterable[str]) -> set[str]:
        """Return the modules that some modules import, directly or not, with their packages."""
        found: set[str] = set()
        left = list(roots)
        while left:
            name = left.pop()
            if name in found or name not in self.paths:
                continue
            found.add(name)
            left += [*self.imports[name], name.rpartition(".")[0]]
        return found

    def followed(self) -> set[str]:
        """Return the closure of a run with `--url`."""
        return self.closure(name for name in self.paths if name.endswith(ROOTS))

    def module(self, end: str) -> str:
        """Return the only module whose name ends so. Raises ValueError."""
        (found,) = [name for name in self.paths if name.endswith(end)]
        return found

    def total(self, names: Iterable[str]) -> int:
        """Return the lines of some modules."""
        return sum(self.lines[name] for name in names)

    def by_part(self) -> Mapping[str, int]:
        """Return the lines of the core and of each edge."""
        found: Counter[str] = Counter()
        for name, lines in self.lines.items():
            parts = name.split(".")
            is_edge = parts[1:2] == ["edges"] and len(parts) > 2
            found[f"edges/{parts[2]}" if is_edge else "core"] += lines
        return found


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, package in FOLDERS.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            yield ".".join([package, *(one for one in parts if one != "__init__")]), path


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each import as a module and a name of it, "" for the module itself."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, "") for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((module, alias.name) for alias in names)


def main() -> None:
    """Print the table."""
    house = House()
    followed = house.followed()
    rows = [
        ("lines of the product", house.total(house.paths)),
        *((f"  {part}", lines) for part, lines in sorted(house.by_part().items())),
        ("modules of the product", len(house.paths)),
        ("lines that follow `run --url`", house.total(followed)),
        ("modules that follow it", len(followed)),
        ("modules that run/lifecycle imports", len(house.imports[house.module("run.lifecycle")])),
    ]
    sys.stdout.writelines(f"{number:10,}  {name}\n" for name, number in rows)


if __name__ == "__main__":
    main()
