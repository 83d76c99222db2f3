"""Scenarios without a service, for tests of a set-up: they sleep, fail or make output."""

from __future__ import annotations

import random
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.common.plugin.scenario import Scenario, configure, pause


class DummyError(Exception):
    """Error with which dummy scenarios fail on purpose."""


class Dummy(Scenario):
    """Rally's `Dummy` scenarios: they sleep, fail or make output, without a service."""

    @configure(name="Dummy.dummy")
    def dummy(self, sleep: float = 0, **kwargs: Any) -> None:
        """Sleep for `sleep` seconds, in an action `bar` within an action `foo`.

        Further arguments are accepted and have no effect.
        """
        self._foo(sleep)

    @action_timer("foo")
    def _foo(self, sleep: float) -> None:
        self._bar(sleep)

    @action_timer("bar")
    def _bar(self, sleep: float) -> None:
        pause(sleep)

    @configure(name="Dummy.dummy_exception")
    def dummy_exception(
        self, size_of_message: int = 1, sleep: float = 1, message: str = ""
    ) -> None:
        """Sleep for `sleep` seconds, then fail with `message`, or `size_of_message` letters."""
        pause(sleep)
        raise DummyError(message or "M" * size_of_message)

    @configure(name="Dummy.dummy_exception_probability")
    def dummy_exception_probability(self, exception_probability: float = 0.5) -> None:
        """Fail with the probability given, 0 (never) to 1 (always)."""
        if _chance(exception_probability):
            raise DummyError(
                f"raised on purpose, as exception_probability is {exception_probability}"
            )

    @configure(name="Dummy.dummy_random_fail_in_atomic")
    def dummy_random_fail_in_atomic(self, exception_probability: float = 0.5) -> None:
        """Run four actions, nested two by two, of which any may fail at random.

        The probability at each action is a quarter of `exception_probability` (0 to 1); with 1 the
        first action always fails. A failure ends the iteration.
        """
        each = exception_probability if exception_probability == 1 else exception_probability / 4
        for _ in range(2):
            with ActionTimer(self, "dummy_fail_test"):
                self._fail(each)
                with ActionTimer(self, "dummy_fail_inner_test"):
                    self._fail(each)

    def _fail(self, probability: float) -> None:
        if _chance(probability):
            raise KeyError("failed on purpose")

    @configure(name="Dummy.dummy_random_action")
    def dummy_random_action(
        self, actions_num: int = 5, sleep_min: float = 0, sleep_max: float = 0
    ) -> None:
        """Run `actions_num` actions that each sleep a random time between two bounds in seconds."""
        for number in range(actions_num):
            sleep_s = random.uniform(sleep_min, sleep_max)  # noqa: S311 - load, not secrets
            with ActionTimer(self, f"action_{number}"):
                pause(sleep_s)

    @configure(name="Dummy.dummy_timed_atomic_actions")
    def dummy_timed_atomic_actions(
        self, number_of_actions: int = 5, sleep_factor: float = 1
    ) -> None:
        """Run `number_of_actions` actions; they sleep 0, 1, 2 ... times `sleep_factor` seconds."""
        for number in range(number_of_actions):
            with ActionTimer(self, f"action_{number}"):
                pause(number * sleep_factor)

    @configure(name="Dummy.failure")
    def failure(
        self,
        sleep: float = 0.1,
        from_iteration: int = 0,
        to_iteration: int = 0,
        each: int = 1,
    ) -> None:
        """Sleep for `sleep` seconds, then fail if the iteration's number is divisible by `each`.

        Only numbers from `from_iteration` to `to_iteration` fail, both included; none if `each` is
        0.
        """
        pause(sleep)
        iteration = self.context["iteration"]
        if each and from_iteration <= iteration <= to_iteration and iteration % each == 0:
            raise DummyError("failed on purpose")

    @configure(name="Dummy.dummy_output")
    def dummy_output(self, random_range: int = 25) -> None:
        """Make one output for each kind of chart, with random numbers from 1 to `random_range`."""
        draw = _Draw(random_range)
        self._additive("StatsTable", draw.pairs("foo stat", "bar stat", "spam stat"))
        self._additive("StackedArea", draw.pairs(*(f"foo {n}" for n in range(1, 7))), label="foos")
        self._additive("Lines", draw.pairs("bar 1", "bar 2", "bar 3"), label="bars")
        self._additive("Pie", draw.pairs("spam 1", "spam 2", "spam 3"))
        axes = {"label": "units", "axis_label": "step"}
        self._complete("Lines", draw.series(7, "Foo", "Bar", "Spam"), **axes)
        self._complete("StackedArea", draw.series(50, "alpha", "beta", "gamma"), **axes)
        self._complete("Pie", draw.pairs("delta", "epsilon", "zeta", "theta", "lambda", "omega"))
        self._complete("TextArea", ["A text of several lines.", "Each of them is an item."])
        self._complete("Table", draw.table(("iota", "nu", "rho", "phi", "psi"), 4))

    def _additive(self, chart: str, data: Any, **labels: str) -> None:
        self.add_output(additive=_item("Additive", chart, data, labels))

    def _complete(self, chart: str, data: Any, **labels: str) -> None:
        self.add_output(complete=_item("Complete", chart, data, labels))


def _chance(probability: float) -> bool:
    return random.random() < probability  # noqa: S311 - load, not secrets


def _item(kind: str, chart: str, data: Any, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "title": f"{kind} {chart}",
        "description": f"An example of {kind.lower()} data shown as {chart}",
        "chart_plugin": chart,
        "data": data,
        **labels,
    }


class _Draw:
    """Random data for charts: all numbers are integers from 1 to `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def number(self) -> int:
        return random.randint(1, self._limit)  # noqa: S311 - load, not secrets

    def pairs(self, *names: str) -> list[list[Any]]:
        return [[name, self.number()] for name in names]

    def series(self, points: int, *names: str) -> list[list[Any]]:
        return [[name, [[x, self.number()] for x in range(1, points + 1)]] for name in names]

    def table(self, rows: tuple[str, ...], columns: int) -> dict[str, Any]:
        return {
            "cols": ["row", *(f"column {n}" for n in range(1, columns + 1))],
            "rows": [[row, *(self.number() for _ in range(columns))] for row in rows],
        }
