"""The interface of hooks: an action during the load, such as a fault that is injected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Event:
    """The event at which a hook fires: a time under load, or a number of iterations."""

    #: "time" (whole seconds after the start of the load) or "iteration" (iterations reported).
    unit: str
    value: int
    #: Id of the run.
    run: str = ""


class Failed(Exception):
    """Raised by a hook to report that its action failed; `output` still goes into the report.

    `etype` and `details` (text) describe an exception raised elsewhere; `status` appears in the
    report.
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
    """Base class of hooks: a new instance for each firing, in its own thread of the coordinator."""

    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: JSON schema of the configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on errors that the schema cannot detect; `config` fits the schema.

        [] unless a subclass overrides it.
        """
        return []

    def run(self, event: Event) -> Mapping[str, Any] | None:
        """Perform the action; subclasses override this.

        An exception makes the action fail; the load goes on. The returned value goes into the
        report: None, or lists of charts in Rally's format, `{"additive": [...], "complete":
        [...]}`, each with `title`, `chart_plugin` and `data`.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """End `run` early; does nothing unless it is overridden.

        Called from another thread when the coordinator waits no longer for `run`.
        """
