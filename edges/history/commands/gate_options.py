"""Options of the command `gate`, and the rules between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from osbench.coordinator.front.cli.base import DurationType
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule
from osbench.coordinator.front.cli.options.option_table import OptionSet, option
from osbench.edges.history.commands.alternating_runs import ENOUGH, PairOptions


@dataclass(frozen=True, kw_only=True)
class GateOptions(PairOptions):
    """Options for `gate`: the service, its two commits, and the runs."""

    SECTION = "Change and service"

    serve: str | None = option(
        "--serve",
        metavar="COMMAND",
        help="Starts the service in its source tree, at 127.0.0.1 on the port $PORT.",
    )
    setup: str = option(
        "--setup",
        default="",
        metavar="COMMAND",
        help="Runs once in each source tree before, such as `make build`.",
    )
    parent: str = option(
        "--parent",
        default="HEAD^1",
        show_default=True,
        metavar="REVISION",
        help="The commit before the change.",
    )
    change: str | None = option(
        "--change",
        metavar="REVISION|COMMAND",
        help="The commit that is judged. Default: HEAD. Without --serve: the command that changes"
        " the service, such as its upgrade.",
    )
    repository: Path = option(
        "--repository",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        metavar="DIR",
        help="Git repository of the service; default: this directory.",
    )
    ready_s: float = option(
        "--ready-within",
        type=DurationType(),
        default=60.0,
        metavar="DURATION",
        help="How long to wait for a service to accept connections; default: 60s.",
    )
    output: Path = option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("osbench-gate"),
        show_default=True,
        metavar="DIR",
        help="Gets verdict.md, verdict.json, verdict.html, and the logs of services or commands.",
    )


@dataclass(frozen=True, kw_only=True)
class UpgradeOptions(OptionSet):
    """Options for `gate` with a service that is there, and is changed by a command."""

    SECTION = "A service that runs already"

    before: str = option(
        "--before",
        default="",
        metavar="COMMAND",
        help="Runs before each block of runs before the change, such as a restart.",
    )
    after: str = option(
        "--after",
        default="",
        metavar="COMMAND",
        help="Runs before each block of runs after the change.",
    )
    blocks: int = option(
        "--blocks",
        type=click.IntRange(ENOUGH),
        default=4,
        show_default=True,
        metavar="N",
        help="Blocks of runs before the change, and after it.",
    )
    runs: int = option(
        "--runs",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        metavar="N",
        help="Runs of each block.",
    )
    within_s: float = option(
        "--within",
        type=DurationType(),
        default=3600.0,
        metavar="DURATION",
        help="Longest time of each of these commands; default: 1h.",
    )


_OF_COMMITS = ("--setup", "--parent", "--repository", "--ready-within", "--pairs")
_OF_UPGRADES = ("--before", "--after", "--blocks", "--runs", "--within")
RULES = (
    Alternatives(
        of=("--serve", "--change"),
        missing="the change to judge is missing",
        remedy="--serve compares two commits, --change a service before and after a command",
    ),
    Rule(option="--serve", why="compares two commits", excludes=_OF_UPGRADES),
    *(Rule(option=one, why="is of two commits", needs=("--serve",)) for one in _OF_COMMITS),
    *(
        Rule(option=one, why="is of a change by a command", needs=("--change",))
        for one in _OF_UPGRADES
    ),
)
