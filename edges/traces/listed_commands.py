"""The command of this edge as `--help` lists it: its section and first line."""

from __future__ import annotations

from osbench.coordinator.front.cli.listed_command import LOOK, ListedCommand

TRACE = ListedCommand(
    "trace",
    "Show where iterations spent their time.",
    place="osbench.edges.traces.trace_command:trace",
    section=LOOK,
)
