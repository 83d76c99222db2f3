"""The public interface for plug-in authors: import from here, from nowhere else.

Further modules are imported by those who ask for them, as in `from osbench.plugin import cloud`:

- `statistics`: percentiles, and names of nested atomic actions, for SLA criteria
- `formatting`: numbers and texts as reports print them
- `durations`: durations in configurations, as people write them
- `cloud`: access to an OpenStack cloud, for contexts that make objects in it
- `sessions`: HTTP sessions whose answers are bounded, for exporters
- `errors`: what contexts raise

`statistics`, `formatting` and `cloud` are made of modules of the coordinator, which a worker that
runs a scenario does not load.
"""

from osbench.common.plugin import atomic, context, exporter, hook, runner, scenario, sla, trigger

__all__ = ["atomic", "context", "exporter", "hook", "runner", "scenario", "sla", "trigger"]
