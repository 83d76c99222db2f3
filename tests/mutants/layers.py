"""Layers of tests, as paths and options of pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suites.parts import FEW, REPOSITORY, Part, parts


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tests that one call of pytest runs."""

    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    #: Environment variables; `{root}` is the root of the checkout.
    variables: Mapping[str, str] = field(default_factory=dict)


def _suite(part: Part) -> Suite:
    paths = [one for one in part.selection if one.startswith("tests/")]
    others = [one for one in part.selection if one not in paths]
    root = str(REPOSITORY)
    return Suite(
        paths=tuple(paths),
        options=(*part.options, *others),
        variables={name: text.replace(root, "{root}") for name, text in part.variables.items()},
    )


#: The name of the tests that import the changed module.
NEAR = "near"
#: The tests of `make test`, and those that `make test-all` adds.
LAYERS: dict[str, tuple[Suite, ...]] = {
    "test": tuple(map(_suite, parts("test"))),
    "test-all": tuple(map(_suite, parts("rest"))),
}


def near_suite(files: Sequence[str]) -> Suite:
    """Return the suite of some files."""
    return Suite(paths=tuple(files), options=FEW)


def split(layer: Sequence[Suite], tests: Sequence[str]) -> list[tuple[Suite, list[str]]]:
    """Divide tests between the suites of a layer: to the suite with the longest path to a test.

    Suites without any of the tests are left out.
    """
    chosen: dict[int, list[str]] = {}
    for test in tests:
        file = PurePosixPath(test.partition("::")[0])
        depths = {
            at: max((len(path) for path in suite.paths if file.is_relative_to(path)), default=-1)
            for at, suite in enumerate(layer)
        }
        chosen.setdefault(max(depths, key=depths.__getitem__), []).append(test)
    return [(layer[at], listed) for at, listed in sorted(chosen.items())]
