"""Options that several commands have: the field of each, and sets of related options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from osbench.common.plugin.plugin_names import NATIVE, SOURCES
from osbench.coordinator.front.cli.base import DurationType
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    file_option,
    flag,
    option,
    repeated_option,
)


def json_flag(what: str = "one object") -> bool:
    """Return the dataclass field of the flag `--json`; `what` describes the output in its help."""
    return flag("--json", help=f"Print only JSON to stdout: {what}.")


def details_flag() -> bool:
    """Return the dataclass field of the flag `--details`."""
    return flag("--details", help="Print all figures instead of the summary.")


def quiet_flag(result: str = "the report") -> bool:
    """Return the dataclass field of the flag `--quiet`.

    `result` names, in its help, the output that is printed nevertheless.
    """
    return flag("--quiet", "-q", help=f"Print no progress, only {result}.")


def plugin_paths(what: str = "plug-ins of osbench or Rally") -> tuple[str, ...]:
    """Return the dataclass field of `--plugin-path`, which may be repeated.

    `what` describes the plug-ins in its help.
    """
    return repeated_option(
        "--plugin-path",
        metavar="PATH",
        help=f"Python file, or directory of them, with {what}; may be repeated.",
    )


def deployment_name() -> str | None:
    """Return the dataclass field of `--deployment`: a record's name, None if it is not given."""
    return option(
        "--deployment", metavar="NAME", help="Deployment record. Default: the record in use."
    )


def workers_wait(default: str = "[coordinator] wait_for_workers_s") -> float | None:
    """Return the dataclass field of `--wait-for-workers`: seconds, None if it is not given.

    `default` describes, in its help, the time that applies then.
    """
    return option(
        "--wait-for-workers",
        type=DurationType(),
        metavar="DURATION",
        help=f"Longest wait for workers. Default: {default}.",
    )


def workload_name() -> str | None:
    """Return the dataclass field of `--workload`: name or number of a run's workload, or None."""
    return option(
        "--workload",
        metavar="NAME|N",
        help="Workload, by name or position from 0; needed if there are several.",
    )


def wanted_tags() -> tuple[str, ...]:
    """Return the dataclass field of `--tag`: a command selects runs that have all of these tags."""
    return repeated_option("--tag", help="Only runs with this tag; may be repeated.")


def page_file() -> Path | None:
    """Return the dataclass field of `--html`: path of a page to write, or None."""
    return file_option("--html", help="Write a page that opens without a server.")


def archive_url(help: str = "Also use the runs of an archive") -> str | None:
    """Return the dataclass field of `--archive`: folder or URL of an archive, or None.

    `help` begins its help with the use of the archive.
    """
    return option(
        "--archive",
        metavar="URL",
        help=f"{help}: a folder, or a URL such as s3://BUCKET/FOLDER.",
    )


def damaged_flag() -> bool:
    """Return the dataclass field of the flag `--damaged`, which reads damaged runs if possible."""
    return flag(
        "--damaged",
        help="Read damaged runs as far as possible; the output is marked as PARTIAL.",
    )


def preferred_plugins() -> str:
    """Return the dataclass field of `--prefer`: native or rally.

    Its source is used for a name that plug-ins of both have.
    """
    return option(
        "--prefer",
        type=click.Choice(SOURCES),
        default=NATIVE,
        show_default=True,
        help="Plug-in to use if osbench and Rally have the same name.",
    )


#: More worker processes than any fleet has.
MOST_WORKERS = 100_000


@dataclass(frozen=True, kw_only=True)
class FleetOptions(OptionSet):
    """Options for deployment and workers of a run."""

    SECTION = "Deployment and workers"

    deployment: str | None = deployment_name()
    workers: int | None = option(
        "--workers",
        type=click.IntRange(1, MOST_WORKERS),
        metavar="N",
        help="Number of worker processes. Default: all that are free.",
    )
    #: None if it is not given.
    join: bool | None = option(
        "--join/--no-join",
        type=click.BOOL,
        help="Take workers that become free under load, up to --workers. Default: [coordinator] "
        "join, with --workers no.",
    )
    #: Longest wait for workers, seconds.
    wait_for_workers: float | None = workers_wait()


@dataclass(frozen=True, kw_only=True)
class OutputOptions(OptionSet):
    """Options for the output of a run."""

    SECTION = "Output"

    quiet: bool = quiet_flag()
    as_json: bool = json_flag()
    details: bool = details_flag()
