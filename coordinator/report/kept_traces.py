"""The traces that a run has kept: an optional package has them, by `osbench.kept_traces`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from osbench.common.plugin import entry_points
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.task.deployments.registry import Deployments


class TraceLocations(Protocol):
    """Settings that a lookup of a trace needs: directory of runs and deployment records."""

    @property
    def data_dir(self) -> Path:
        """Directory that contains the run directories."""

    @property
    def deployments(self) -> Deployments:
        """Deployment records; they have the addresses of trace stores."""


class KeptTraces(Protocol):
    """Reads the traces of runs."""

    def export_requests(self, directory: RunDirectory) -> Iterator[dict[str, Any]]:
        """Yield the traces of a run as export requests of OTLP/JSON. Raises DamagedRun."""

    def print_spans(
        self, locations: TraceLocations, run_id: str, trace_id: str, console: Console
    ) -> None:
        """Print a trace of a run as a tree of spans. Raises OsbenchError if it cannot be read."""


def kept_traces() -> KeptTraces | None:
    """Return the reader of traces; None if no package has one. Raises PluginError."""
    if "traces" not in entry_points.names("kept_traces"):
        return None
    reader: type[KeptTraces] = entry_points.load_object("kept_traces", "traces")
    return reader()
