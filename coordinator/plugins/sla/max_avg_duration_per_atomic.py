"""SLA criterion `max_avg_duration_per_atomic`: mean durations of atomic actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration
from osbench.plugin.statistics import name_paths, unknown


class MaxAvgDurationPerAtomic(sla.Sla):
    """The mean duration of each named action, over all its calls in successful iterations.

    As in Rally, failed actions count where their iteration went on and succeeded, which is why
    rows are read and not `Statistics`. Nested actions are named by path, "outer > inner".
    """

    NAME: ClassVar[str] = "max_avg_duration_per_atomic"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": {**DURATION, "description": "seconds, by action"},
        "minProperties": 1,
        "examples": [{"keystone_v3.create_token": 0.5}],
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        #: Calls and their nanoseconds by action.
        self._calls = dict.fromkeys(config, 0)
        self._sums = dict.fromkeys(config, 0)

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message for each limit below 0; [] without one."""
        return [
            f"the limit of {name} must not be negative, got {limit}"
            for name, limit in config.items()
            if limit < 0
        ]

    @classmethod
    def judged_actions(cls, config: Any) -> list[str]:
        """Return the names of the actions that have a limit."""
        return list(config)

    def add(self, columns: sla.Columns) -> None:
        """Add the calls, and their durations, of actions with a limit in successful iterations.

        An action that was left open lasts until its iteration ends.
        """
        lines = columns.actions
        if not len(lines):
            return
        number, labels = name_paths(lines, columns.names)
        succeeded = columns.outcome[lines[:, 0]] == sla.Outcome.OK
        for at, label in enumerate(labels):
            if label not in self._calls:
                continue
            rows = lines[succeeded & (number == at)]
            # left open, it lasted until its iteration's end
            ended = np.where(rows[:, 4] < rows[:, 3], columns.ended[rows[:, 0]], rows[:, 4])
            self._calls[label] += len(rows)
            self._sums[label] += int((ended - rows[:, 3]).sum())

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the mean of each action is within its limit.

        Fails if an action with a limit is in no successful iteration.
        """
        success, said = True, []
        for name, limit in self.config.items():
            calls = self._calls[name]
            if not calls:
                success = False
                known = statistics.actions
                strange = name not in known and (known or statistics.count("ok"))
                why = unknown(name, known) if strange else "in no successful iteration"
                said.append(f"{name}: {why}")
                continue
            mean = self._sums[name] / calls
            success &= mean <= limit * 1e9
            average = f"average of {calls} {duration(mean / 1e9)}"
            said.append(f"{name}: {average}, allowed {duration(limit)}")
        return self.verdict(success, "; ".join(said))
