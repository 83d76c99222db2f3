"""Shared by the commands: the configuration as they get it, tables, consoles and files."""

from __future__ import annotations

import functools
import io
import math
import os
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import click
from oslo_config import cfg
from rich.console import Console

from osbench.common.config import config
from osbench.common.config.durations import seconds
from osbench.common.errors import UsageError
from osbench.common.escaping import escaped
from osbench.coordinator.cli.group import FILES, config_option, let_go

if TYPE_CHECKING:
    from osbench.common.deployment.record import Deployment
    from osbench.common.plugin.plugins import Plugins
    from osbench.common.protocol.keyring import Keyring
    from osbench.coordinator.deployments.registry import Deployments
    from osbench.coordinator.text_table import TextTable

#: Width of a table, and of text, that is written to a file or a pipe.
_WIDE = 1000
_TEXT_WIDE = 200

P = ParamSpec("P")
R = TypeVar("R")


class DurationType(click.ParamType[float]):
    """A duration on the command line, such as 30, 30s or 5m; its value is in seconds."""

    name = "duration"

    def __init__(self, least_s: float = 0.0) -> None:
        self._least_s = least_s

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a string to seconds. A number is a default that is seconds already."""
        try:
            found = seconds(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)
        if found < self._least_s:
            self.fail(f"{value!r} must be at least {self._least_s:g} s", param, ctx)
        return found


class FiniteRange(click.FloatRange):
    """A number within bounds; nan, which is within all of them, and infinities are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a string to a number."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


class CommandSettings:
    """The configuration, read from its files on first use."""

    def __init__(self, files: tuple[str, ...] = ()) -> None:
        self._files = files

    @cached_property
    def conf(self) -> cfg.ConfigOpts:
        """Every option. Raises ConfigError."""
        return config.load(self._files)

    @property
    def data_dir(self) -> Path:
        """Directory of runs, deployment records and keys."""
        return Path(self.conf.data_dir)

    @property
    def key_file(self) -> Path:
        """The file that `keys new` writes and runs read."""
        return Path(self.conf.security.key_file)

    @property
    def deployments(self) -> Deployments:
        """The deployment records."""
        # workers of local mode start before these are imported
        from osbench.coordinator.deployments.registry import Deployments  # noqa: PLC0415 - above

        return Deployments(self.data_dir)

    def deployment(self, name: str | None) -> Deployment | None:
        """Return the record of that name, the one in use, or None. Raises DeploymentError."""
        if name is None and self.deployments.used() is None:
            return None
        return self.deployments.get(name)

    def keyring(self) -> Keyring:
        """Return the keys of the key file. Raises ConfigError if it is missing or not private."""
        from osbench.common.protocol.keyring import Keyring  # noqa: PLC0415 - as `deployments`

        return Keyring.load(self.key_file)


def with_settings(command: Callable[Concatenate[CommandSettings, P], R]) -> Callable[P, R]:
    """Pass `Settings` as the first argument of a command, and give it `--config-file`."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        files: tuple[str, ...] = click.get_current_context().meta.get(FILES, ())
        return command(CommandSettings(files), *args, **kwargs)

    return config_option(wrapped)


class PipedConsole(Console):
    """A console whose command goes on if its reader has closed the pipe, as in `run | head`."""

    def on_broken_pipe(self) -> None:
        """Print nothing else. Rich itself would end the command here, with exit code 1."""
        self.quiet = True
        let_go(self.file)


class _Trimmed(io.TextIOBase):
    """Standard output without blanks at the ends of lines, which rich fills up."""

    def write(self, text: str) -> int:
        """Write lines."""
        return sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))

    def flush(self) -> None:
        """Write buffered text."""
        sys.stdout.flush()

    def fileno(self) -> int:
        """The descriptor of standard output."""
        return sys.stdout.fileno()


def _console(wide: int, **settings: Any) -> Console:
    """A console as wide as the terminal; for files and pipes as `COLUMNS` says, else `wide`."""
    if sys.stdout.isatty():
        return PipedConsole(**settings)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else wide
    return PipedConsole(width=width, file=cast("IO[str]", _Trimmed()), **settings)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line; the command goes on if the reader has closed the pipe."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        let_go(sys.stderr if err else sys.stdout)


def warn_of_plugins(plugins: Plugins, *, faults: bool = True) -> Plugins:
    """Warn of classes in plug-in files that look like plug-ins but are not. Raises PluginError.

    Without `faults`, unusable files are left to the check of a task with them.
    """
    if faults:
        plugins.warn()
    for note in plugins.notes():
        echo(escaped(f"Warning: {note}"), err=True)
    return plugins


def echo_table(table: TextTable) -> None:
    """Print a table: folded to the width of a terminal; one line per row elsewhere."""
    _console(_WIDE, markup=False, highlight=False).print(table)


def console() -> Console:
    """A console for text: as wide as the terminal; wide for files and pipes."""
    return _console(_TEXT_WIDE)


def write_file(path: Path, content: str) -> None:
    """Write a file that the user asked for, and say so. Raises UsageError."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    click.echo(f"wrote {path}", err=True)
