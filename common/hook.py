"""The hook interface: an action beside the load, such as a fault that is injected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Event:
    """Why a hook is run."""

    #: "time" (seconds after t0) or "iteration" (iterations started).
    unit: str
    value: float


class Hook:
    """Base of hooks. Runs in the coordinator, in a thread of its own; a new instance each time."""

    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: JSON schema of the configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Any) -> None:
        self.config = config

    def run(self, event: Event) -> Mapping[str, Any] | None:
        """Act; what it answers (JSON values) goes into the report. An exception is its failure."""
        raise NotImplementedError
