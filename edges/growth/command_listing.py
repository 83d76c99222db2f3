"""The command of this edge as `--help` lists it: its section and first line."""

from __future__ import annotations

from osbench.coordinator.front.cli.listed_command import COMPARE, ListedCommand

GROW = ListedCommand(
    "grow",
    "Find the requests of a task that get slow as its service fills.",
    place="osbench.edges.growth.grow_command:grow",
    section=COMPARE,
)
