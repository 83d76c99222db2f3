"""A group of commands, light to import: errors as one message and exit code, and --config-file."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from typing import IO, Any

import click

from osbench.common.errors import INTERRUPTED, OsbenchError, OutputError, UsageError
from osbench.common.text.escaping import escaped

#: Where a context of click keeps the files of `--config-file`.
FILES = "osbench.config_files"
#: Options of `locust` and `k6 run` -> what `osbench-coord run` has instead.
CALLED = {
    "--csv": "--export csv=FILE",
    "--env": "--task-args NAME=VALUE",
    "--expect-workers": "--workers N",
    "--host": "the key `http: {base: URL}` of the task",
    "--html": "--report FILE",
    "--iterations": "--times N",
    "--locustfile": "--scenario NAME with --plugin-path FILE",
    "--out": "--export NAME=TARGET",
    "--run-time": "--duration SECONDS",
    "--spawn-rate": "the key `users: {start_rate: N}` of the task",
    "--stage": "the runner `user_stages` of the task",
    "--summary-export": "--json",
    "--vus": "--users N",
}


class Group(click.Group):
    """A group of commands that report errors as one message and exit code, not as a traceback.

    Errors of osbench exit with their `exit_code`, bad usage with 2, an interrupt with 130. With
    `--json`, not of `report`, the message is JSON on stdout, as docs/results.schema.json describes.
    """

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run the command line (`sys.argv` if `args` is None), and exit the process with its code.

        Errors are printed as the class says. With `standalone_mode=False`, returns the result or
        raises the error instead.
        """
        if not extra.get("standalone_mode", True):
            return super().main(args, *rest, **extra)
        given = list(sys.argv[1:] if args is None else args)
        # --json of `report` takes a file
        names = self.list_commands(click.Context(self)) if "--json" in given else ()
        command = next((word for word in given if word in names), "")
        as_json = "--json" in given and command != "report"
        extra["standalone_mode"] = False
        try:
            code = super().main(given, *rest, **extra)
            # what was written last may still be in the buffer
            _flush()
        except OutputError as error:
            let_go(sys.stdout)
            code = _print_error(as_json, error, f"Error: {error}")
        except OsbenchError as error:
            code = _print_error(as_json, error, f"Error: {error}")
        except click.ClickException as error:
            told = with_our_name(error)
            code = _print_error(as_json, UsageError(told.format_message()), "")
            if not as_json:
                _show_usage(told)
            code = told.exit_code
        except OSError as error:
            code = _print_error(as_json, OsbenchError(str(error)), f"Error: {error}")
        except (KeyboardInterrupt, click.Abort):
            interrupted = OsbenchError("interrupted before there was anything to report")
            interrupted.exit_code = INTERRUPTED
            code = _print_error(as_json, interrupted, "interrupted")
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments; exit with 0 if the reader of `--help` has closed the pipe."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            let_go(sys.stdout)
            sys.exit(0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; return 0 if the reader of its output closes the pipe, as `head` does."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            let_go(sys.stdout)
            return 0


def with_our_name(error: click.ClickException) -> click.ClickException:
    """Return `error`; if `run` was given another tool's option, an error that names our option."""
    if (
        isinstance(error, click.NoSuchOption)
        and error.ctx is not None
        and error.ctx.info_name == "run"
        and error.option_name in CALLED
    ):
        text = f"{error.message.rstrip('.')}. It is called {CALLED[error.option_name]} here."
        return click.UsageError(text, error.ctx)
    return error


def let_go(file: IO[str]) -> None:
    """Discard all further output to `file`, stdout or stderr: its reader has closed the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)


def _flush() -> None:
    """A reader that has closed the pipe is not an error. Raises OutputError for others."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        let_go(sys.stdout)


def _print_error(as_json: bool, error: OsbenchError, text: str) -> int:
    if as_json and not isinstance(error, OutputError):
        # it imports all that reports are made of, which `--help` does without
        from osbench.coordinator.report.error_json import to_error_json  # noqa: PLC0415 - see above

        _print_json(to_error_json(error))
    elif text:
        click.echo(escaped(text, breaks=True), err=True)
    return error.exit_code


def _print_json(value: Any) -> None:
    try:
        click.echo(json.dumps(value))
    except (BrokenPipeError, OutputError):
        # the exit code says it
        let_go(sys.stdout)


def _show_usage(error: click.ClickException) -> None:
    # the message repeats what was typed or pasted
    text = io.StringIO()
    error.show(file=text)
    click.echo(escaped(text.getvalue(), breaks=True), err=True, nl=False)


def _remember(ctx: click.Context, _: click.Parameter, files: tuple[str, ...]) -> None:
    # Contexts of nested commands share `meta`, so the option works before and after a command.
    ctx.meta[FILES] = (*ctx.meta.get(FILES, ()), *files)


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
