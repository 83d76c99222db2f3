"""The interface of triggers, which decide when a hook fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

#: What is counted, and its least value: seconds from 0, iterations from 1.
LEAST: Mapping[str, int] = {"time": 0, "iteration": 1}


class Trigger:
    """Base class of triggers. One instance per hook and workload; it runs in the coordinator.

    `unit` is the unit that it counts: "time", whole seconds after the start of the load, or
    "iteration", iterations reported. By default it is the configuration's key `unit`.
    """

    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: JSON schema of the configuration, which is an object.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.unit: str = config.get("unit", "time")

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on errors that the schema cannot detect; `config` fits the schema.

        [] unless a subclass overrides it.
        """
        return []

    def due(self, after: int, until: int) -> Sequence[int]:
        """Return the values of the unit, above `after` and at most `until`, at which to fire.

        Subclasses override this. Called several times per second, each time with `after` equal to
        the last `until`, at first -1. The result must not depend on how often it is called. After
        an exception the hook is not fired any more.
        """
        raise NotImplementedError
