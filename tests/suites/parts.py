"""The parts of each suite of tests, as arguments of pytest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

PROPERTY = "property"
#: Folders of `make test`; only smoke and wheel start whole runs, one of each kind.
QUICK = ("unit", "edges", PROPERTY, "contract", "smoke", "wheel")
#: Folders of whole runs and of real services.
WHOLE = ("functional", "lab")
#: Tests of `QUICK` that only `make test-all` runs.
_DEAR = re.compile(r"\bmark\.dear\b")
#: Property tests have many examples.
_MANY = ("--examples=many",)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One call of pytest."""

    title: str
    #: Arguments that say which tests run.
    selection: Sequence[str]
    #: Arguments that say how.
    options: Sequence[str] = ()
    #: Variables beside those of this process.
    variables: Mapping[str, str] = field(default_factory=dict)


#: Tests that start no whole run.
UNITS = ("unit", "edges", PROPERTY, "contract")
#: Chooses tests of `make test`.
FEW = ("-m", "not timing and not dear")
#: Chooses tests that may differ between versions of Python, and are not dear.
_SAME = ("-m", f"{FEW[1]} and not lab and not browser and not faults")
#: Chooses what only `make test-all` runs of files that `make test` runs, too.
_ONLY_DEAR = ("-m", "dear and not timing")
#: The product in a simulated world: ports are filled before anything else imports osbench.
WORLD = Part(
    title="simulated world",
    selection=("tests/world",),
    options=("-p", "world.ports"),
    variables={"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY / 'tests'}"},
)


def _folders(names: Iterable[str]) -> list[str]:
    return [f"tests/{name}" for name in names]


def _dear_files() -> list[str]:
    """Return the files of `QUICK`, property tests apart, that have tests marked `dear`."""
    folders = _folders(one for one in QUICK if one != PROPERTY)
    paths = (path for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))
    return sorted(
        str(path.relative_to(REPOSITORY)) for path in paths if _DEAR.search(path.read_text("utf-8"))
    )


def parts(suite: str) -> list[Part]:
    """Return the parts of a suite: `test`, `all`, `rest` or `python`.

    `rest` is what `test` leaves out of `all`, `python` what may differ from one version of Python
    to another. Tests marked `timing` are in none. Raises ValueError for other names.
    """
    if suite == "test":
        units = Part(title="units, and a run of each kind", selection=(*_folders(QUICK), *FEW))
        return [units, replace(WORLD, selection=(*WORLD.selection, *FEW))]
    if suite == "rest":
        selection = (*_folders((*WHOLE, PROPERTY)), "-m", "not timing")
        whole = Part(title="whole runs", selection=selection, options=_MANY)
        world = replace(WORLD, title="dear world", selection=(*WORLD.selection, *_ONLY_DEAR))
        dear = Part(title="dear units", selection=(*_dear_files(), *_ONLY_DEAR))
        return [whole, dear, world]
    if suite == "all":
        selection = (*_folders((*WHOLE, *QUICK)), "-m", "not timing")
        return [Part(title="all tests", selection=selection, options=_MANY), WORLD]
    if suite == "python":
        units = Part(title="units", selection=(*_folders(UNITS), *_SAME))
        without = ("--ignore=tests/world/test_mutants.py", *_SAME)
        return [units, replace(WORLD, selection=(*WORLD.selection, *without))]
    raise ValueError(f"no such suite of tests: {suite}; there are {', '.join(LEFT_OUT)}")


#: Told at the end of a suite: what it has not run, and which command does.
LEFT_OUT = {
    "test": "not run: most whole runs, dear units, many examples (make test-all); make timing",
    "rest": "not run: what make test runs; make timing",
    "all": "not run: tests of real time (make timing), for an idle machine",
    "python": "not run: what is the same with every Python (make test, make test-all)",
}
