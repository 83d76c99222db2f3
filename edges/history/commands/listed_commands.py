"""The commands of this edge as `--help` lists them: their sections and first lines."""

from __future__ import annotations

from osbench.coordinator.front.cli.listed_command import COMPARE as SECTION
from osbench.coordinator.front.cli.listed_command import RUN, ListedCommand

_COMMANDS = "osbench.edges.history.commands"

COMPARE = ListedCommand(
    "compare",
    "Compare runs: the first side is before, the second after.",
    place=f"{_COMMANDS}.compare:compare",
    section=SECTION,
)
DUEL = ListedCommand(
    "duel",
    "Run two task files in turn and compare them.",
    place=f"{_COMMANDS}.duel:duel",
    section=SECTION,
)
GATE = ListedCommand(
    "gate",
    "Compare a service before and after a change, and fail if it is worse.",
    place=f"{_COMMANDS}.gate:gate",
    section=SECTION,
)
TRENDS = ListedCommand(
    "trends",
    "Show percentiles over runs, and their lasting changes.",
    place=f"{_COMMANDS}.trends:trends",
    section=SECTION,
)
PLAN = ListedCommand(
    "plan",
    "Say how many workers a task needs, from a calibration.",
    place="osbench.edges.history.sizing.plan_command:plan",
    section=RUN,
)
PUSH = ListedCommand(
    "push",
    "Put runs into an archive that a team shares.",
    place=f"{_COMMANDS}.pushed_runs:push",
)
PULL = ListedCommand(
    "pull",
    "Fetch runs of an archive into the data directory.",
    place=f"{_COMMANDS}.pushed_runs:pull",
)
