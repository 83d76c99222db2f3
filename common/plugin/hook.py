"""The hook interface: an action beside the load, such as a fault that is injected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Event:
    """Why a hook is run."""

    #: "time" (whole seconds after the start of the load) or "iteration" (iterations reported).
    unit: str
    value: int
    #: Id of the run.
    run: str = ""


class Failed(Exception):
    """The action of a hook has failed; what it has to show for it is reported all the same.

    `etype` and `details` are for what was raised elsewhere; `status` is a word for the report.
    """

    def __init__(
        self,
        message: str,
        output: Mapping[str, Any] | None = None,
        *,
        etype: str = "Failed",
        details: str = "",
        status: str = "failed",
    ) -> None:
        super().__init__(message)
        self.output = output
        self.etype = etype
        self.details = details
        self.status = status


class Hook:
    """Base of hooks. Runs in the coordinator, in a thread of its own; a new instance each time."""

    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: JSON schema of the configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """What the schema cannot forbid, as messages; `config` fits the schema."""
        return []

    def run(self, event: Event) -> Mapping[str, Any] | None:
        """Act. An exception is its failure; the load goes on.

        What it answers goes into the report: None, or lists of charts as Rally draws them,
        `{"additive": [...], "complete": [...]}`, each with `title`, `chart_plugin` and `data`.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """End `run` early. Called from another thread when the report doesn't wait any longer."""
