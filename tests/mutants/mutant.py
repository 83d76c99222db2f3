"""A mutant: a module of the product with one change, and the layer of tests that found it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mutants.changes import KINDS, Change, changed, changes_of, code_lines, is_compiled

#: Folders of the product; `src/osbench` links to the first three.
FOLDERS = ("common", "coordinator", "worker", "edges", "src/osbench")
#: The layer of a mutant whose lines a later commit has changed.
GONE = "gone"


@dataclass(kw_only=True)
class Mutant:
    """A change at its place, and its fate."""

    seed: int
    #: From 1 in each seed.
    number: int
    #: From the root of the repository.
    path: str
    line: int
    kind: str
    #: Lines with the change, in UTF-8.
    context: str
    #: Bytes before the change in `context`, replaced bytes, and their replacement.
    at: int
    length: int
    after: str
    #: The layer that found it, and the test; empty if no layer did so far.
    found_by: str = ""
    test: str = ""
    #: Layer -> commit whose tests it survived.
    survived: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Seed and number."""
        return f"{self.seed}/{self.number}"

    @property
    def lines_after(self) -> str:
        """`context` with the change."""
        return self._lines_after().decode()

    def planted(self, source: bytes) -> bytes | None:
        """Return a module with the change, or None if the module no longer has these lines.

        If the module has the lines several times, the change is made nearest to `line`.
        """
        context = self.context.encode()
        starts = [at for at in _occurrences(source, context) if at == 0 or source[at - 1] == 10]
        if not starts:
            return None
        at = min(starts, key=lambda at: abs(source.count(b"\n", 0, at) + 1 - self.line))
        return source[:at] + self._lines_after() + source[at + len(context) :]

    def _lines_after(self) -> bytes:
        context = self.context.encode()
        return context[: self.at] + self.after.encode() + context[self.at + self.length :]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)


def drawn(root: Path, seed: int, count: int) -> list[Mutant]:
    """Draw mutants of the product in `root`: a module by its lines of code, a kind, a change.

    The same seed and code give the same mutants. There are fewer than `count` if the product has
    fewer changes.
    """
    chance = random.Random(seed)
    modules = {path: (root / path).read_bytes() for path in product_modules(root)}
    weights = {path: code_lines(text) for path, text in modules.items()}
    left: dict[str, dict[str, list[Change]]] = {}
    mutants: list[Mutant] = []
    while len(mutants) < count and any(weights.values()):
        (path,) = chance.choices(list(weights), list(weights.values()))
        if path not in left:
            left[path] = _by_kind(changes_of(modules[path]))
        if not left[path]:
            weights[path] = 0
            continue
        kind = chance.choice(sorted(left[path]))
        changes = left[path][kind]
        change = changes.pop(chance.randrange(len(changes)))
        if not changes:
            del left[path][kind]
        if not is_compiled(changed(modules[path], change)):
            continue
        number = len(mutants) + 1
        mutants.append(mutant_of(path, modules[path], change, seed=seed, number=number))
    return mutants


def product_modules(root: Path) -> list[str]:
    """Return the paths of the product's modules, sorted."""
    paths: Iterable[Path] = (
        path
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if not any(parent.is_symlink() for parent in path.parents if parent != root)
    )
    return sorted(str(path.relative_to(root)) for path in paths)


def mutant_of(path: str, text: bytes, change: Change, *, seed: int, number: int) -> Mutant:
    """Return the mutant of a module and a change."""
    begin = text.rfind(b"\n", 0, change.start) + 1
    end = text.find(b"\n", change.end)
    return Mutant(
        seed=seed,
        number=number,
        path=path,
        line=text.count(b"\n", 0, change.start) + 1,
        kind=change.kind,
        context=text[begin : len(text) if end < 0 else end + 1].decode(),
        at=change.start - begin,
        length=change.end - change.start,
        after=change.after.decode(),
    )


def _by_kind(changes: Iterable[Change]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    for change in changes:
        found[change.kind].append(change)
    return {kind: listed for kind, listed in found.items() if listed}


def _occurrences(source: bytes, wanted: bytes) -> Iterable[int]:
    at = source.find(wanted)
    while at >= 0:
        yield at
        at = source.find(wanted, at + 1)
