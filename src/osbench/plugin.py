"""The public interface for plug-in authors: import from here, from nowhere else."""

from osbench.common import atomic, runner, scenario, sla

__all__ = ["atomic", "runner", "scenario", "sla"]
