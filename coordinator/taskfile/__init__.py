"""Task files: rendered, parsed, checked."""

from osbench.coordinator.taskfile.args import read_args
from osbench.coordinator.taskfile.loading import load
from osbench.coordinator.taskfile.parsing import parse

__all__ = ["load", "parse", "read_args"]
