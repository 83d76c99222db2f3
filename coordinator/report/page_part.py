"""Parts of a run's page that optional packages provide by entry points `osbench.page_part`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from osbench.common.plugin import entry_points
from osbench.coordinator.storage.run_directory import RunDirectory


class PagePart(Protocol):
    """A part of one workload's section; its template has the same name, and sees all it has."""

    def payload(self) -> dict[str, Any]:
        """Return additions to the data of the section's charts, as JSON values."""


def page_parts(directory: RunDirectory) -> dict[str, Mapping[int, PagePart]]:
    """Read the parts of a run's page from its directory: by name, then number of the workload.

    Raises DamagedRun.
    """
    names = sorted(entry_points.names("page_part"))
    return {name: entry_points.loaded("page_part", name)(directory) for name in names}
