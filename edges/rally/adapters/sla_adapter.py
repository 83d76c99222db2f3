"""Rally's SLA criteria as osbench's: they get iterations in the format of Rally's runners."""

from __future__ import annotations

from typing import Any, ClassVar

from osbench.common.plugin.sla import Columns, Sla, Statistics, Verdict
from osbench.edges.rally.adapters.records import records
from osbench.edges.rally.adapters.shared import adapter_class, problems


def sla_class(name: str) -> type[Sla] | None:
    """Return the adapter class of Rally's criterion `name` or `name@platform`; imports Rally.

    None if there is none or Rally is not installed. Raises PluginError if Rally is broken, or if
    several platforms have the name.
    """
    return adapter_class(RallySla, "sla", name)


class RallySla(Sla):
    """Base class of adapters of Rally's SLA criteria; the class RALLY computes the verdict."""

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
        """Return problems that Rally's validators find in `config`; [] without any."""
        return problems("sla", cls.RALLY, config)

    def add(self, columns: Columns) -> None:
        """Pass a record of each iteration that ran to Rally's criterion, in the order of the rows.

        The verdict when it first fails is stored, for `breach`.
        """
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
        """Return the verdict when the criterion first failed; None if it never has.

        A load that stops on SLA failure ends with it, even if the criterion holds again, as in
        Rally.
        """
        return self._unmet

    def _verdict(self) -> Verdict:
        result = self._criterion.result()
        return self.verdict(bool(result["success"]), str(result["detail"]))
