"""Percentiles of histograms, sliding windows, and paths of atomic actions, for SLA criteria.

- `percentiles(histogram, percents)`: a `PercentileEstimate` each: value and 95 % confidence
  interval, in nanoseconds
- `least_percentile(histogram, percent, more)`: its least value after `more` further samples
- `name_paths(lines, names)`: the path, "outer > inner", of each line of `Columns.actions`
- `Windows(over_s, from_s)`: counts over sliding windows of time, and the worst `Window` of them;
  `OVER_S` is the JSON schema of their length
- `made_checks(columns.outputs)`: the soft checks that each iteration made; `outputs` has its charts
- `design_effect(bad, counts)`: variance of the number of bad iterations, relative to chance
- `unknown(path, known)`: a message on an action that no iteration had, with similar ones
"""

from osbench.common.protocol.iteration_outputs import outputs
from osbench.coordinator.results.statistics.action_paths import name_paths, unknown
from osbench.coordinator.results.statistics.percentiles import (
    PercentileEstimate,
    least_percentile,
    percentiles,
)
from osbench.coordinator.results.statistics.proportions import design_effect
from osbench.coordinator.results.statistics.soft_checks import made_checks
from osbench.coordinator.results.statistics.windows import OVER_S, Window, Windows

__all__ = [
    "OVER_S",
    "PercentileEstimate",
    "Window",
    "Windows",
    "design_effect",
    "least_percentile",
    "made_checks",
    "name_paths",
    "outputs",
    "percentiles",
    "unknown",
]
