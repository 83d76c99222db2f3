"""A task from options, for runs without a file: `run --scenario NAME --rps 50 --duration 30`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import yaml

from osbench.common.errors import UsageError
from osbench.common.yaml_documents import load_yaml
from osbench.coordinator.cli.base import DurationType, FiniteRange
from osbench.coordinator.runners.runner_schema import FASTEST


@dataclass(frozen=True, kw_only=True)
class Adhoc:
    """The values of the options; `scenario` is None if there is a task file."""

    scenario: str | None = None
    #: Texts `name=value`, the value in YAML.
    arg: tuple[str, ...] = ()
    rps: float | None = None
    duration: float | None = None
    times: int | None = None
    concurrency: int | None = None
    timeout: float | None = None

    @property
    def given(self) -> bool:
        """A scenario is named."""
        return self.scenario is not None

    @property
    def without_effect(self) -> list[str]:
        """Options that were given and mean nothing without a scenario."""
        return [f"--{name}" for name, value in vars(self).items() if value not in (None, ())]

    @property
    def load_given(self) -> bool:
        """A rate, a duration, a number of iterations or users is given."""
        given = (self.rps, self.duration, self.times, self.concurrency)
        return any(one is not None for one in given)

    def document(self) -> dict[str, Any]:
        """The task document. Raises UsageError for options that do not go together."""
        return {
            "version": 2,
            "title": f"{self.scenario} from the command line",
            "subtasks": [
                {
                    "title": str(self.scenario),
                    "scenario": {str(self.scenario): self._arguments()},
                    "runner": self._runner(),
                }
            ],
        }

    def _arguments(self) -> dict[str, Any]:
        found = {}
        for text in self.arg:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise UsageError(f"--arg {text}: write name=value")
            try:
                found[name] = load_yaml(value)
            except yaml.YAMLError:
                found[name] = value
        return found

    def _runner(self) -> dict[str, Any]:
        limit = {} if self.timeout is None else {"timeout": self.timeout}
        if self.rps is not None:
            return {"rps": {"rps": self.rps, "times": self._arrivals(self.rps), **limit}}
        users = self.concurrency or 1
        if self.duration is not None:
            if self.times is not None:
                raise UsageError("--times and --duration cannot be combined without --rps")
            config = {"duration": self.duration, "concurrency": users, **limit}
            return {"constant_for_duration": config}
        return {"constant": {"times": self.times or users, "concurrency": users, **limit}}

    def _arrivals(self, rps: float) -> int:
        if self.concurrency is not None:
            raise UsageError("--rps and --concurrency cannot be combined: arrivals do not wait")
        if (self.times is None) == (self.duration is None):
            raise UsageError("--rps needs --duration or --times, not both")
        return self.times or max(1, math.floor(rps * float(self.duration or 0)))


def adhoc_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command: it gets its options as one `Adhoc` named `adhoc`."""

    @click.option("--scenario", metavar="NAME", help="Run one scenario, without a task file.")
    @click.option(
        "--arg", multiple=True, metavar="NAME=VALUE", help="Argument of it; may be repeated."
    )
    @click.option(
        "--rps",
        type=FiniteRange(0, FASTEST, min_open=True),
        metavar="N",
        help="Arrivals per second.",
    )
    @click.option(
        "--duration", type=DurationType(), metavar="DURATION", help="For how long it runs."
    )
    @click.option("--times", type=click.IntRange(1), metavar="N", help="How often it runs.")
    @click.option(
        "--concurrency",
        type=click.IntRange(1),
        metavar="N",
        help="Virtual users, without --rps; default: 1.",
    )
    @click.option(
        "--timeout", type=DurationType(), metavar="DURATION", help="Timeout of an iteration."
    )
    @functools.wraps(command)
    def collected(*args: Any, **given: Any) -> Any:
        names = ("scenario", "arg", "rps", "duration", "times", "concurrency", "timeout")
        return command(*args, adhoc=Adhoc(**{name: given.pop(name) for name in names}), **given)

    return collected
