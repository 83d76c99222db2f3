"""The public interface for plug-in authors: import from here, from nowhere else."""

from osbench.common.plugin import atomic, context, exporter, hook, runner, scenario, sla, trigger

__all__ = ["atomic", "context", "exporter", "hook", "runner", "scenario", "sla", "trigger"]
