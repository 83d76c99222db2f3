"""Durations in configurations, as people write them: `30`, `30s`, `5m`, `1h30m`.

- `DURATION`: the JSON schema of one, as in `{**DURATION, "minimum": 1}`; what it checks has been
  read as seconds
- `seconds(text)`: the seconds that a text stands for
- `TIMEOUT_S`: the timeout of an iteration unless a task gives one, seconds
"""

from osbench.common.config.durations import DURATION, TIMEOUT_S, seconds

__all__ = ["DURATION", "TIMEOUT_S", "seconds"]
