"""The search for the layer that finds each mutant.

Tests near a module run for one mutant after another. A dearer layer runs once with all mutants that
are left, and each test that failed then runs again with each of these mutants alone. A mutant that
makes other mutants harmless hides them; that is rare enough to be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mutants.checkout import Checkout, Outcome
from mutants.layers import NEAR, Suite, near_suite, split
from mutants.mutant import Mutant

#: Seconds for a test near a module, and for all of them. Unit tests take a few.
NEAR_TEST_S = 120
NEAR_S = 1800.0
#: Files that run first: most mutants are found there, without the imports of the others.
NEAREST = 6
#: Seconds for a whole layer, many times what it takes.
LAYER_S = 3 * 3600.0
#: Share of failed tests above which a joint run says nothing about single mutants.
WHOLESALE = 0.3


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
        for mutant in self._left(mutants, NEAR):
            files = graph.near_tests(mutant.path)
            self.tell(
                f"{mutant.name} {mutant.path}:{mutant.line} {mutant.kind}: {len(files)} files"
            )
            culprit = self._near_culprit(mutant, files[:NEAREST])
            self._settle(mutant, NEAR, culprit or self._near_culprit(mutant, files[NEAREST:]))

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

    def _near_culprit(self, mutant: Mutant, files: list[str]) -> str:
        suite = near_suite(files)
        flaky: list[str] = []
        while files:
            options = ["-x", "-p", "no:cacheprovider", f"--timeout={NEAR_TEST_S}"]
            options += [f"--deselect={test}" for test in flaky]
            with self.checkout.planted([mutant]) as planted:
                if not planted:
                    self.tell(f"{mutant.name}: the module no longer has these lines")
                    return ""
                outcome = self.checkout.run(suite, files, *options, limit_s=NEAR_S, is_small=True)
            if outcome.is_passed:
                return ""
            if not outcome.failed or self._is_sound([suite], outcome.failed[0]):
                return outcome.culprit
            self.tell(f"fails without a mutant as well: {outcome.failed[0]}")
            if outcome.failed[0] in flaky:
                return ""
            flaky.append(outcome.failed[0])
        return ""

    def _is_sound(self, suites: Sequence[Suite], test: str) -> bool:
        """Report whether a test passes without any mutant."""
        if test not in self._passes:
            self._passes[test] = self._again(suites, [test], "-x").is_passed
        return self._passes[test]

    def _joint(self, name: str, suites: Sequence[Suite], group: list[Mutant]) -> None:
        """Find the mutants of a group that a layer finds."""
        self.tell(f"{name}: {', '.join(mutant.name for mutant in group)} together")
        with self.checkout.planted(group) as planted:
            outcome = Outcome()
            for suite in suites if planted else ():
                outcome.add(
                    self.checkout.run(
                        suite,
                        suite.paths,
                        *("--numprocesses", str(self.jobs), "--no-loadscope-reorder"),
                        limit_s=LAYER_S,
                        is_small=False,
                    )
                )
        few = len(outcome.failed) <= WHOLESALE * outcome.count
        self.tell(f"{name}: {len(outcome.failed)} of {outcome.count} failed {outcome.broken}")
        if (outcome.broken or not few) and len(group) > 1:
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
            if sound and mutant in planted:
                with self.checkout.planted([mutant]):
                    culprit = self._again(suites, sound, "-x").culprit
            self._settle(mutant, name, culprit)

    def _sound(self, suites: Sequence[Suite], tests: Sequence[str]) -> list[str]:
        """Return the tests that pass without any mutant."""
        unknown = [test for test in tests if test not in self._passes]
        failed = set(self._again(suites, unknown).failed) if unknown else set()
        self._passes |= {test: test not in failed for test in unknown}
        for test in sorted(failed):
            self.tell(f"fails without a mutant as well: {test}")
        return [test for test in tests if self._passes[test]]

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
