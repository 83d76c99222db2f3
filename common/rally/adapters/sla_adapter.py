"""Rally's SLA criteria as osbench's: they get iterations in the format of Rally's runners."""

from __future__ import annotations

from typing import Any, ClassVar

from osbench.common.plugin.sla import Columns, Sla, Statistics, Verdict
from osbench.common.rally.adapters.records import records
from osbench.common.rally.adapters.shared import adapted, problems


def sla_class(name: str) -> type[Sla] | None:
    """Return the adapter of Rally's criterion `name` or `name@platform`; None if there is none.

    Raises PluginError if Rally is broken, or if several platforms have the name.
    """
    return adapted(RallySla, "sla", name)


class RallySla(Sla):
    """Base class of adapters of Rally's SLA criteria; RALLY is the class that judges."""

    #: Rally's class.
    RALLY: ClassVar[Any]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._criterion = self.RALLY(config)
        self._seen = 0
        #: The verdict when the criterion was first not met.
        self._unmet: Verdict | None = None

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return problems found by Rally's validators."""
        return problems("sla", cls.RALLY, config)

    def add(self, columns: Columns) -> None:
        """Pass the iterations that ran to Rally's criterion, in the order of their results."""
        for _, record in records(columns, columns.failures, columns.t0_at):
            self._seen += 1
            if not self._criterion.add_iteration(record) and self._unmet is None:
                self._unmet = self._verdict()

    def check(self, statistics: Statistics) -> Verdict:
        """Return Rally's verdict; a failing one if no iteration has ended."""
        if not self._seen:
            return self.verdict(False, "no iteration has ended")
        return self._verdict()

    def breach(self, statistics: Statistics, plan: int | None) -> Verdict | None:
        """Return the first failing verdict, None until then: as in Rally, the load ends with it."""
        return self._unmet

    def _verdict(self) -> Verdict:
        result = self._criterion.result()
        return self.verdict(bool(result["success"]), str(result["detail"]))
