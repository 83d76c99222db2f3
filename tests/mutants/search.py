"""The search for the layer that finds each mutant.

Tests near a module run for one mutant after another. A dearer layer runs once with all mutants that
are left, and each test that failed then runs again with each of these mutants alone. A mutant that
makes other mutants harmless hides them; that is rare enough to be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from click import ClickException

from mutants.checkout import Checkout, Outcome
from mutants.import_graph import UNITS
from mutants.layers import NEAR, Suite, near_suite, split
from mutants.mutant import GONE, Mutant

#: Seconds for a test near a module, and for all of them. Unit tests take a few.
NEAR_TEST_S = 120
NEAR_S = 1800.0
#: Files that run first: most mutants are found there, without the imports of the others.
NEAREST = 6
#: Seconds for a whole layer, many times what it takes.
LAYER_S = 3 * 3600.0
#: Share and number of failed tests above which a run says nothing about single mutants.
WHOLESALE = 0.3
MOST_FAILED = 300


class BrokenTests(ClickException):
    """Raised if pytest ends without a verdict although no mutant is planted."""


class Nearness(Protocol):
    """Files of tests near a module, nearest first."""

    def near_tests(self, path: str) -> list[str]:
        """Return files of tests that import a module."""


@dataclass(kw_only=True)
class Search:
    """Runs layers in a checkout, and notes in each mutant the layer that found it."""

    checkout: Checkout
    #: The commit that is checked out.
    commit: str
    tell: Callable[[str], None]
    #: Keeps the fates of the mutants after each verdict.
    save: Callable[[], None]
    #: Processes of pytest in a joint run.
    jobs: int = 2
    #: Test -> whether it passes without any mutant.
    _passes: dict[str, bool] = field(default_factory=dict)

    def near(self, mutants: Sequence[Mutant], graph: Nearness) -> None:
        """Run the tests near the module of each mutant, until the first failure."""
        left = [mutant for mutant in self._left(mutants, NEAR) if self._has_place(mutant)]
        while left:
            for mutant in left:
                files = graph.near_tests(mutant.path)
                place = f"{mutant.path}:{mutant.line}"
                self.tell(f"{mutant.name} {place} {mutant.kind}: {len(files)} files of tests")
                culprit = self._near_culprit(mutant, files[:NEAREST])
                self._settle(mutant, NEAR, culprit or self._near_culprit(mutant, files[NEAREST:]))
            tests = [mutant.test for mutant in left if mutant.found_by]
            unsound = set(tests) - set(self._sound([near_suite(UNITS)], tests))
            left = [mutant for mutant in left if mutant.test in unsound]
            for mutant in left:
                mutant.found_by = mutant.test = ""

    def layer(self, name: str, suites: Sequence[Suite], mutants: Sequence[Mutant]) -> None:
        """Run a layer with all mutants that are left, at most one of each module at a time."""
        waiting = self._left(mutants, name)
        while waiting:
            group: dict[str, Mutant] = {}
            for mutant in waiting:
                group.setdefault(mutant.path, mutant)
            waiting = [mutant for mutant in waiting if group[mutant.path] is not mutant]
            self._joint(name, suites, list(group.values()))

    def _left(self, mutants: Iterable[Mutant], layer: str) -> list[Mutant]:
        return [
            mutant
            for mutant in mutants
            if not mutant.found_by and mutant.survived.get(layer) != self.commit
        ]

    def _has_place(self, mutant: Mutant) -> bool:
        if self.checkout.has_place(mutant):
            return True
        self._settle(mutant, GONE, "the module no longer has these lines")
        return False

    def _near_culprit(self, mutant: Mutant, files: list[str]) -> str:
        """Return the first test that fails, or an empty text; a test may be unsound."""
        if not files:
            return ""
        unsound = [test for test, passes in self._passes.items() if not passes]
        with self.checkout.planted([mutant]):
            outcome = self.checkout.run(
                near_suite(files),
                files,
                *("-x", "-p", "no:cacheprovider", f"--timeout={NEAR_TEST_S}"),
                *(f"--deselect={test}" for test in unsound),
                limit_s=NEAR_S,
                is_small=True,
            )
        if outcome.broken and not outcome.failed:
            self._verify_start(files)
        return "" if outcome.culprit in unsound else outcome.culprit

    def _verify_start(self, files: Sequence[str]) -> None:
        """Raise BrokenTests if pytest cannot collect some files without any mutant."""
        suite = near_suite(files)
        outcome = self.checkout.run(suite, files, "--collect-only", limit_s=NEAR_S, is_small=True)
        if outcome.broken:
            raise BrokenTests(f"tests without a mutant: {outcome.culprit}")

    def _joint(self, name: str, suites: Sequence[Suite], group: list[Mutant]) -> None:
        """Find the mutants of a group that a layer finds."""
        self.tell(f"{name}: {', '.join(mutant.name for mutant in group)} together")
        with self.checkout.planted(group):
            outcome = self._whole(suites)
        self.tell(f"{name}: {len(outcome.failed)} of {outcome.count} failed {outcome.broken}")
        if outcome.broken and len(group) > 1:
            half = len(group) // 2
            self._joint(name, suites, group[:half])
            self._joint(name, suites, group[half:])
            return
        if outcome.broken and not outcome.failed:
            self._settle(group[0], name, outcome.broken)
            return
        sound = self._sound(suites, outcome.failed)
        for mutant in group:
            culprit = ""
            if sound:
                with self.checkout.planted([mutant]):
                    culprit = self._again(suites, sound, "-x").culprit
            self._settle(mutant, name, culprit)

    def _whole(self, suites: Sequence[Suite]) -> Outcome:
        """Run suites until one of them is broken, which wholesale failure is as well."""
        outcome = Outcome()
        side_by_side = ("--numprocesses", str(self.jobs), "--no-loadscope-reorder")
        for suite in suites:
            options = (*side_by_side, f"--maxfail={MOST_FAILED}")
            outcome.add(
                self.checkout.run(suite, suite.paths, *options, limit_s=LAYER_S, is_small=False)
            )
            if len(outcome.failed) > min(WHOLESALE * outcome.count, MOST_FAILED - 1):
                outcome.broken = outcome.broken or "wholesale"
            if outcome.broken:
                break
        return outcome

    def _sound(self, suites: Sequence[Suite], tests: Sequence[str]) -> list[str]:
        """Return the tests that pass without any mutant."""
        # an outcome may name a reason instead of a test
        unknown = [test for test in tests if test not in self._passes and ".py" in test]
        outcome = self._again(suites, unknown)
        if outcome.broken and not outcome.failed:
            raise BrokenTests(f"tests without a mutant: {outcome.broken}")
        failed = set(outcome.failed)
        for test in unknown:
            self._passes[test] = not {test, test.partition("::")[0]} & failed
            if not self._passes[test]:
                self.tell(f"fails without a mutant as well: {test}")
        return [test for test in tests if self._passes.get(test, True)]

    def _again(self, suites: Sequence[Suite], tests: Sequence[str], *options: str) -> Outcome:
        """Run some tests, suite by suite; with `-x` until the first failure."""
        outcome = Outcome()
        for suite, listed in split(suites, tests):
            outcome.add(self.checkout.run(suite, listed, *options, limit_s=LAYER_S, is_small=False))
            if "-x" in options and not outcome.is_passed:
                break
        return outcome

    def _settle(self, mutant: Mutant, layer: str, culprit: str) -> None:
        if culprit:
            mutant.found_by, mutant.test = layer, culprit
        else:
            mutant.survived[layer] = self.commit
        self.tell(f"{mutant.name}: {culprit or 'survived'}")
        self.save()
