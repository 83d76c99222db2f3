"""Configuration, tables, consoles and files as the commands use them."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click
from oslo_config import cfg

from osbench.common.config import config
from osbench.common.config.durations import seconds
from osbench.common.errors import UsageError
from osbench.common.text.escaping import escaped, one_line
from osbench.coordinator.front.cli.group import FILES, config_option, let_go

if TYPE_CHECKING:
    from rich.console import Console

    from osbench.common.deployment.record import Deployment
    from osbench.common.plugin.plugins import Plugins
    from osbench.common.protocol.keyring import Keyring
    from osbench.coordinator.task.deployments.registry import Deployments
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
        """Convert a duration such as "5m" to seconds; a number is a default in seconds already.

        Fails with a usage error for other text or less than `least_s` seconds.
        """
        try:
            found = seconds(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)
        if found < self._least_s:
            self.fail(f"{value!r} must be at least {self._least_s:g} s", param, ctx)
        return found


class FiniteRange(click.FloatRange):
    """A number within bounds that is finite: nan, which passes all bounds, is refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a string to a finite number; fails with a usage error otherwise."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


class CommandSettings:
    """The configuration of a command, read from its files on first use, with its stores.

    The constructor gets the paths of `--config-file`; () for the default files.
    """

    def __init__(self, files: tuple[str, ...] = ()) -> None:
        self._files = files

    @cached_property
    def conf(self) -> cfg.ConfigOpts:
        """All options with their values, read once. Raises ConfigError."""
        return config.load(self._files)

    @property
    def data_dir(self) -> Path:
        """Directory of runs, deployment records and keys."""
        return Path(self.conf.data_dir)

    @property
    def key_file(self) -> Path:
        """Path of the key file, which `keys new` writes and runs read."""
        return Path(self.conf.security.key_file)

    @property
    def deployments(self) -> Deployments:
        """The store of deployment records in the data directory."""
        # workers of local mode start before these are imported
        from osbench.coordinator.task.deployments.registry import Deployments  # noqa: PLC0415 - above

        return Deployments(self.data_dir)

    def deployment(self, name: str | None) -> Deployment | None:
        """Return the deployment record called `name`; for None the record in use.

        None if no record is in use. Raises DeploymentError if the record is missing or cannot be
        read.
        """
        if name is None and self.deployments.used() is None:
            return None
        return self.deployments.get(name)

    def keyring(self) -> Keyring:
        """Return the keys of the key file. Raises ConfigError if it is missing or not private."""
        from osbench.common.protocol.keyring import Keyring  # noqa: PLC0415 - as `deployments`

        return Keyring.load(self.key_file)


def with_settings(command: Callable[Concatenate[CommandSettings, P], R]) -> Callable[P, R]:
    """Decorate a command: its first argument becomes a `CommandSettings`.

    The command also gets the option `--config-file`, which names the files to read.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        files: tuple[str, ...] = click.get_current_context().meta.get(FILES, ())
        return command(CommandSettings(files), *args, **kwargs)

    return config_option(wrapped)


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text, and a newline if `nl`, to stdout, or with `err` to stderr.

    Characters in it that could steer a terminal are escaped: parts of it may be written by others.
    If its reader has closed the pipe, all further output to it is discarded without an error.
    """
    _print(escaped(text, breaks=True), err=err, nl=nl)


def echo_json(value: Any, **options: Any) -> None:
    """Print a value as JSON in ASCII to stdout, as `echo` does; `options` are of `json.dumps`."""
    _print(json.dumps(value, **options), err=False, nl=True)


def _print(text: str, *, err: bool, nl: bool) -> None:
    try:
        click.echo(text, err=err, nl=nl)
    except BrokenPipeError:
        let_go(sys.stderr if err else sys.stdout)


def warn_of_plugins(plugins: Plugins, *, faults: bool = True) -> Plugins:
    """Import plug-in files, print warnings of classes that only look like plug-ins.

    Returns `plugins`. Also logs files that cannot be used, unless `faults` is False: then the check
    of a task reports them. Raises PluginError.
    """
    if faults:
        plugins.warn()
    for note in plugins.notes():
        echo(one_line(f"Warning: {note}"), err=True)
    return plugins


def echo_table(table: TextTable) -> None:
    """Print a table to stdout: folded to the width of a terminal, else one line per row."""
    from osbench.coordinator.front.cli.piped_console import piped_console  # noqa: PLC0415 - as `console`

    piped_console(_WIDE, markup=False, highlight=False).print(table)


def console() -> Console:
    """Return a console for text on stdout: as wide as the terminal, else 200 characters."""
    # workers of local mode start before rich is imported
    from osbench.coordinator.front.cli.piped_console import piped_console  # noqa: PLC0415 - see above

    return piped_console(_TEXT_WIDE)


def write_file(path: Path, content: str) -> None:
    """Write (or replace) a file that the user asked for, and print its path to stderr.

    Raises UsageError if it cannot be written.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}; free space, or give a path in a writable "
            "folder"
        ) from None
    echo(f"wrote {path}", err=True)
