"""Task files: from YAML or JSON with a Jinja template to a checked task."""

from osbench.coordinator.task.taskfile.args import read_args
from osbench.coordinator.task.taskfile.loading import checked_task, load
from osbench.coordinator.task.taskfile.parsing import parse

__all__ = ["checked_task", "load", "parse", "read_args"]
