"""The SLA interface: a criterion over the merged statistics of one workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Statistics(Protocol):
    """What criteria may ask of a workload's merged results."""

    def count(self, state: str) -> int:
        """Iterations in a state of `osbench.common.outcomes.STATES`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a criterion says of a workload."""

    criterion: str
    success: bool
    detail: str


class Sla:
    """Base of criteria. One instance a workload; `check` may be called many times."""

    #: JSON schema of the criterion's configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}
    #: Name in task files.
    NAME: ClassVar[str] = ""

    def __init__(self, config: Any) -> None:
        self.config = config

    def check(self, statistics: Statistics) -> Verdict:
        """Judge the results so far. A criterion without data fails."""
        raise NotImplementedError
