"""Percentiles of histograms, and paths of atomic actions, for SLA criteria.

- `percentiles(histogram, percents)`: a `PercentileEstimate` each: value and 95 % confidence
  interval, in nanoseconds
- `least_percentile(histogram, percent, more)`: what a percentile comes to at least, whatever
  `more` further samples are; for `Sla.breach`
- `name_paths(lines, names)`: the path, "outer > inner", of each line of `Columns.actions`
- `unknown(path, known)`: a message on an action that no iteration had, with similar ones
"""

from osbench.coordinator.statistics.action_paths import name_paths, unknown
from osbench.coordinator.statistics.percentiles import (
    PercentileEstimate,
    least_percentile,
    percentiles,
)

__all__ = ["PercentileEstimate", "least_percentile", "name_paths", "percentiles", "unknown"]
