"""The errors of osbench: one short tree; the message says what, where and what to do."""

from __future__ import annotations

from osbench.common.masking import mask_url


class OsbenchError(Exception):
    """A broken run or a refused input. `exit_code` is what a command ends with.

    Its text is for people and files: secrets of addresses in it are hidden.
    """

    exit_code = 2

    def __str__(self) -> str:
        return mask_url(super().__str__())


class UsageError(OsbenchError):
    """The command line asks for something that cannot be."""


class ConfigError(OsbenchError):
    """A configuration file holds an unknown or impossible value; names file, option and value."""


class DeploymentError(OsbenchError):
    """A deployment record is missing, malformed or refused."""


class PluginError(OsbenchError):
    """A plug-in cannot be found, loaded, or is used as what it is not."""


class ContextError(OsbenchError):
    """A context cannot be set up, or what it has made cannot be kept or undone."""


class FleetError(OsbenchError):
    """Not the workers, or not the capacity, that the task needs."""


class StoreError(OsbenchError):
    """Redis or the broker refuses us: address, password, version or policy."""


class StoreAway(OsbenchError):
    """Redis did not answer; whether the command took effect is not known."""

    exit_code = 3


class StoreLost(OsbenchError):
    """Redis came back without this run: nobody can go on."""

    exit_code = 3


class Untrusted(OsbenchError):
    """A message whose signature, kind or shape is not ours. Counted, never acted on."""


class Problem:
    """One fault of an input file: where it stands, what is wrong, the value it got."""

    __slots__ = ("message", "place")

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        self.message = mask_url(message)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class TaskError(OsbenchError):
    """A task file is wrong. Carries every problem found, not only the first."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        lines = "\n".join(f"  {problem}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{source}: {count}\n{lines}")
