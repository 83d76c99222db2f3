"""Base of scenarios that move the content of objects or images: the rate of their transfers."""

from __future__ import annotations

from osbench.common.plugin.output_values import pack_output
from osbench.common.plugin.scenario import Scenario

#: Title of the chart.
TITLE = "Rate of transfers, MB/s"


class TransferScenario(Scenario):
    """Base of scenarios whose report has a chart of the rate of transfers, by atomic action."""

    #: Bytes and seconds of the transfers of this iteration, by action.
    _moved: dict[str, tuple[int, float]] | None = None
    _chart = 0

    def note_transfer(self, action: str, size: int, lasted_s: float) -> None:
        """Count a complete transfer of `size` bytes in the chart of this iteration.

        `lasted_s`: seconds from a connection that is ready to the end of the response. An iteration
        adds one rate for each action, its bytes by its seconds, in MB/s (10^6 bytes).
        """
        if lasted_s <= 0:
            return
        if self._outputs is None:
            self._outputs = []
        if self._moved is None:
            self._moved, self._chart = {}, len(self._outputs)
            self._outputs.append(b"")
        before, before_s = self._moved.get(action, (0, 0.0))
        self._moved[action] = before + size, before_s + lasted_s
        rates = [[name, moved / spent / 1e6] for name, (moved, spent) in self._moved.items()]
        # one chart in an iteration: several of a title would be separate charts in a report
        self._outputs[self._chart] = pack_output(
            "additive", {"title": TITLE, "chart_plugin": "StatsTable", "data": rates}
        )
