"""Shared by all commands: the configuration option, and errors as one message and exit code."""

from __future__ import annotations

import functools
import io
import json
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
from oslo_config import cfg
from rich.console import Console
from rich.table import Table

from osbench.common.config import config
from osbench.common.deployment.record import Deployment
from osbench.common.errors import OsbenchError, UsageError
from osbench.common.escaping import escaped
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.deployments.registry import Deployments
from osbench.coordinator.report.summary_json import to_error_json

#: Exit code of a command that was interrupted.
INTERRUPTED = 130

#: Width of a table, and of text, that is written to a file or a pipe.
_WIDE = 1000
_TEXT_WIDE = 200

_FILES = "osbench.config_files"

P = ParamSpec("P")
R = TypeVar("R")


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
        return Deployments(self.data_dir)

    def deployment(self, name: str | None) -> Deployment | None:
        """The record of that name, else the one in use, else none. Raises DeploymentError."""
        if name is None and self.deployments.used() is None:
            return None
        return self.deployments.get(name)

    def keyring(self) -> Keyring:
        """The keys of the key file. Raises ConfigError where it is missing or not private."""
        return Keyring.load(self.key_file)


class Group(click.Group):
    """A group of commands that report errors as one message and exit code, not as a traceback.

    Errors of osbench exit with their `exit_code`, bad usage with 2, an interrupt with 130. With
    `--json` the message is a JSON object on stdout, as docs/results.schema.json describes.
    """

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run from the command line, or from `args`."""
        if not extra.get("standalone_mode", True):
            return super().main(args, *rest, **extra)
        given = list(sys.argv[1:] if args is None else args)
        # --json of `report` takes a file
        command = next((one for one in given if one in self.commands), "")
        as_json = "--json" in given and command != "report"
        extra["standalone_mode"] = False
        try:
            code = super().main(given, *rest, **extra)
        except OsbenchError as error:
            code = _print_error(as_json, error, f"Error: {error}")
        except click.ClickException as error:
            code = _print_error(as_json, UsageError(error.format_message()), "")
            if not as_json:
                _show_usage(error)
            code = error.exit_code
        except OSError as error:
            code = _print_error(as_json, OsbenchError(str(error)), f"Error: {error}")
        except (KeyboardInterrupt, click.Abort):
            interrupted = OsbenchError("interrupted before there was anything to report")
            interrupted.exit_code = INTERRUPTED
            code = _print_error(as_json, interrupted, "interrupted")
        sys.exit(code if isinstance(code, int) else 0)


def _print_error(as_json: bool, error: OsbenchError, text: str) -> int:
    if as_json:
        click.echo(json.dumps(to_error_json(error)))
    elif text:
        click.echo(escaped(text, breaks=True), err=True)
    return error.exit_code


def _show_usage(error: click.ClickException) -> None:
    # the message repeats what was typed or pasted
    text = io.StringIO()
    error.show(file=text)
    click.echo(escaped(text.getvalue(), breaks=True), err=True, nl=False)


def _remember(ctx: click.Context, _: click.Parameter, files: tuple[str, ...]) -> None:
    # Contexts of nested commands share `meta`, so the option works before and after a command.
    ctx.meta[_FILES] = (*ctx.meta.get(_FILES, ()), *files)


#: Adds `--config-file`; for the top-level group and, with `with_settings`, each command.
config_option = click.option(
    "--config-file",
    multiple=True,
    metavar="FILE",
    expose_value=False,
    callback=_remember,
    help="Configuration file; may be given several times, later ones win. "
    "Default: ~/.osbench/osbench.conf, else /etc/osbench/osbench.conf.",
)


def with_settings(command: Callable[Concatenate[CommandSettings, P], R]) -> Callable[P, R]:
    """Pass `Settings` as the first argument of a command, and give it `--config-file`."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        files: tuple[str, ...] = click.get_current_context().meta.get(_FILES, ())
        return command(CommandSettings(files), *args, **kwargs)

    return config_option(wrapped)


def warn_of_plugins(plugins: Plugins) -> Plugins:
    """Warn of classes in plug-in files that look like plug-ins but are not. Raises PluginError."""
    for note in plugins.notes():
        click.echo(escaped(f"Warning: {note}"), err=True)
    return plugins


def echo_table(table: Table) -> None:
    """Print a table: folded to the width of a terminal; one line per row elsewhere."""
    width = None if sys.stdout.isatty() else _WIDE
    Console(width=width, markup=False, highlight=False).print(table)


def console() -> Console:
    """A console for text: as wide as the terminal; wide for files and pipes."""
    return Console(width=None if sys.stdout.isatty() else _TEXT_WIDE)


def write_file(path: Path, content: str) -> None:
    """Write a file that the user asked for, and say so. Raises UsageError."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    click.echo(f"wrote {path}", err=True)
