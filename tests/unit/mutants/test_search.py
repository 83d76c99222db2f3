"""The search for the layer that finds a mutant, with a checkout whose tests are functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from mutants.checkout import Checkout, Outcome, outcome_of
from mutants.layers import LAYERS, Suite, split
from mutants.mutant import Mutant
from mutants.search import BrokenTests, Search
from mutants.table import rows, share, totals

LAYER = (Suite(paths=("tests",)), Suite(paths=("tests/world",)))


class _Played(Checkout):
    """Tests, each with the function that says whether it fails under the planted mutants."""

    def __init__(self, tests: dict[str, Callable[[set[int]], bool]]) -> None:
        self.tests = tests
        self.now: set[int] = set()
        self.joint: list[set[int]] = []

    @contextlib.contextmanager
    def planted(self, mutants: Iterable[Mutant]) -> Iterator[None]:
        self.now = {mutant.number for mutant in mutants}
        yield
        self.now = set()

    def has_place(self, mutant: Mutant) -> bool:
        return mutant.path != "gone.py"

    def run(
        self, suite: Suite, tests: Sequence[str], *options: str, limit_s: float, is_small: bool
    ) -> Outcome:
        if "--numprocesses" in options and suite is LAYER[0]:
            self.joint.append(self.now)
        chosen = [name for name in self.tests if name in tests or name.startswith(suite.paths)]
        if suite is LAYER[0]:
            chosen = [name for name in chosen if not name.startswith("tests/world")]
        if any("::" in name for name in tests):
            chosen = list(tests)
        chosen = [name for name in chosen if f"--deselect={name}" not in options]
        failed = [name for name in chosen if self.tests[name](self.now)]
        return Outcome(failed=failed[:1] if "-x" in options else failed, count=len(chosen))


class _Graph:
    def near_tests(self, path: str) -> list[str]:
        return ["tests/a.py"]


def _mutants(*paths: str) -> list[Mutant]:
    return [
        Mutant(seed=1, number=number, path=path, line=1, kind="number", context="x = 1\n", at=4,
               length=1, after="2")
        for number, path in enumerate(paths, 1)
    ]  # fmt: skip


def _search(tests: dict[str, Callable[[set[int]], bool]]) -> tuple[Search, _Played]:
    played = _Played(tests)
    search = Search(checkout=played, commit="c1", tell=lambda _: None, save=lambda: None)
    return search, played


def _always_passing(count: int) -> dict[str, Callable[[set[int]], bool]]:
    return {f"tests/b.py::test_{at}": lambda _: False for at in range(count)}


def test_a_layer_runs_once_for_all_mutants_and_names_the_test_of_each() -> None:
    tests = _always_passing(20) | {
        "tests/b.py::one": lambda now: 1 in now,
        "tests/b.py::two": lambda now: 2 in now or 1 in now,
        "tests/b.py::broken": lambda now: True,
        "tests/world/c.py::four": lambda now: 4 in now,
    }
    search, played = _search(tests)
    mutants = _mutants("a.py", "b.py", "c.py", "d.py")

    search.layer("test", LAYER, mutants)

    assert played.joint == [{1, 2, 3, 4}]
    assert [mutant.test for mutant in mutants] == [
        *("tests/b.py::one", "tests/b.py::two", "", "tests/world/c.py::four")
    ]
    assert mutants[2].survived == {"test": "c1"}


def test_mutants_of_one_module_are_not_planted_together() -> None:
    search, played = _search(_always_passing(3))

    search.layer("test", LAYER, _mutants("a.py", "b.py", "a.py"))

    assert played.joint == [{1, 2}, {3}]


def test_a_group_that_fails_wholesale_is_halved() -> None:
    tests = {f"tests/b.py::test_{at}": lambda now: 3 in now for at in range(9)}
    search, played = _search(tests)
    mutants = _mutants("a.py", "b.py", "c.py", "d.py")

    search.layer("test", LAYER, mutants)

    assert played.joint == [{1, 2, 3, 4}, {1, 2}, {3, 4}, {3}, {4}]
    assert [mutant.found_by for mutant in mutants] == ["", "", "test", ""]


def test_a_near_test_that_fails_without_a_mutant_does_not_count() -> None:
    search, _ = _search(
        {"tests/a.py::broken": lambda now: True, "tests/a.py::two": lambda now: 2 in now}
    )
    mutants = _mutants("a.py", "b.py", "gone.py")

    search.near(mutants, _Graph())

    assert [mutant.test for mutant in mutants[:2]] == ["", "tests/a.py::two"]
    assert [mutant.found_by for mutant in mutants] == ["", "near", "gone"]


def test_tests_that_do_not_begin_without_a_mutant_either_are_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search, played = _search({})
    monkeypatch.setattr(played, "run", lambda *_, **__: Outcome(broken="exit 4"))

    with pytest.raises(BrokenTests, match="without a mutant: exit 4"):
        search.near(_mutants("a.py"), _Graph())


def test_a_layer_runs_again_for_a_survivor_at_another_commit_only() -> None:
    search, played = _search(_always_passing(3))
    mutants = _mutants("a.py", "b.py")
    mutants[0].survived["test"] = "c0"
    mutants[1].survived["test"] = "c1"

    search.layer("test", LAYER, mutants)

    assert played.joint == [{1}]


def test_tests_go_to_the_suite_with_the_longest_path() -> None:
    divided = split(LAYER, ["tests/world/a.py::b", "tests/c.py::d", "tests/e.py"])

    assert divided == [
        (LAYER[0], ["tests/c.py::d", "tests/e.py"]),
        (LAYER[1], ["tests/world/a.py::b"]),
    ]


def test_the_output_of_pytest_names_failures_and_files_with_errors() -> None:
    output = """\
.F
failed: tests/a.py::test_b[x (y): z] (call): AssertionError: assert 1 == 2
failed: tests/a.py::test_b[x (y): z] (teardown): OSError: closed
failed: tests/c.py::test_d (???): worker 'gw0' crashed
ERROR tests/e.py - ImportError: cannot import name 'f'
2 failed, 40 passed, 3 skipped, 1 error in 1.23s
"""

    outcome = outcome_of(output)

    assert outcome.failed == ["tests/a.py::test_b[x (y): z]", "tests/c.py::test_d", "tests/e.py"]
    assert outcome.count == 43


def test_the_share_is_known_once_all_layers_have_run() -> None:
    mutants = _mutants("a.py", "b.py", "c.py", "d.py")
    mutants[0].found_by, mutants[0].test = "near", "tests/a.py::one"
    mutants[1].found_by = "test"
    mutants[2].found_by = "test-all"

    assert share(mutants) is None

    mutants[3].survived = dict.fromkeys(LAYERS, "c1")

    assert share(mutants) == 2 / 3
    assert list(totals(mutants)) == [
        "seed 1: 4 mutants, found 1 by near, 1 by test, 1 by test-all; by nobody 1; "
        "make test finds 67% of what make test-all finds"
    ]
    assert list(rows(mutants[:1])) == [
        "    1/1  a.py:1  number      near      tests/a.py::one",
        "         x = 1  ->  x = 2",
    ]
