"""SLA criteria of Rally: their classes get each iteration as Rally's runners would give it."""

from __future__ import annotations

from typing import Any, ClassVar

from osbench.common.plugin.sla import Columns, Sla, Statistics, Verdict
from osbench.common.rally.adapters.records import records
from osbench.common.rally.adapters.shared import adapted, problems


def sla_class(name: str) -> type[Sla] | None:
    """The criterion `name`, or `name@platform`, of Rally; None where there is none."""
    return adapted(RallySla, "sla", name)


class RallySla(Sla):
    """A criterion that a class of Rally judges."""

    #: Rally's class.
    RALLY: ClassVar[Any]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._judge = self.RALLY(config)
        self._seen = 0
        #: What it said when it was first not met.
        self._unmet: Verdict | None = None

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """What Rally's validators say."""
        return problems("sla", cls.RALLY, config)

    def add(self, columns: Columns) -> None:
        """Hand the iterations on in the order in which results come in."""
        for _, record in records(columns, columns.failures, columns.t0_at):
            self._seen += 1
            if not self._judge.add_iteration(record) and self._unmet is None:
                self._unmet = self._verdict()

    def check(self, statistics: Statistics) -> Verdict:
        """Rally's verdict, and a failure where nothing was seen."""
        if not self._seen:
            return self.verdict(False, "no iteration has ended")
        return self._verdict()

    def breach(self, statistics: Statistics, plan: int | None) -> Verdict | None:
        """Rally's rule: a load ends with the first iteration after which this is not met."""
        return self._unmet

    def _verdict(self) -> Verdict:
        result = self._judge.result()
        return self.verdict(bool(result["success"]), str(result["detail"]))
