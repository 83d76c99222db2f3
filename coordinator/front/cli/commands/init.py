"""The commands `init`, `config` and `completion`: write a first task, print options, a script."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from osbench.common.config.options import OPTIONS
from osbench.common.errors import UsageError
from osbench.common.network.origins import is_http
from osbench.common.plugin.request_values import base_fault
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    option_set,
    options,
    repeated_option,
)
from osbench.coordinator.front.cli.written_task import refuse_existing, write_new
from osbench.coordinator.task.taskfile.first_task import ADDRESS, first_task
from osbench.coordinator.task.taskfile.flow_task import (
    FlowTask,
    RecordingOptions,
    flow_task_text,
    read_recording,
)

_RECORDING = "selects requests of a recording"

RULES = (
    Alternatives(
        of=("--url", "--from-har", "--from-openapi", "--from-access-log"),
        single="a task is made of one of them",
    ),
    Rule(option="--host", why=_RECORDING, needs=("--from-har",)),
    Rule(option="--with-assets", why=_RECORDING, needs=("--from-har",)),
    Rule(option="--base", why="says where requests of a log go", needs=("--from-access-log",)),
    Rule(option="--all-methods", why="selects requests of a log", needs=("--from-access-log",)),
    Rule(option="--log-field", why="names fields of a log", needs=("--from-access-log",)),
)


@dataclass(frozen=True, kw_only=True)
class AccessLogOptions(OptionSet):
    """Options for a task that is made of an access log."""

    SECTION = "Access logs"
    from_access_log: str | None = option(
        "--from-access-log",
        metavar="LOG",
        help="Make the task, and a file of arrivals next to it, from a log of nginx, Apache or"
        " HAProxy, or from JSON lines; also compressed by gzip.",
    )
    base: str | None = option("--base", metavar="URL", help="Where the requests go.")
    all_methods: bool = flag(
        "--all-methods",
        help="Keep POST, PUT and others than GET and HEAD, with an empty body.",
    )
    log_fields: tuple[str, ...] = repeated_option(
        "--log-field",
        metavar="KEY=NAME",
        help="In JSON lines, the field that is the time, method, path, request, status or took"
        " (seconds before the time); may be repeated.",
    )


@click.command(cls=RuledCommand, rules=RULES)
@click.argument("file", default="task.yaml", type=click.Path(dir_okay=False))
@options(
    url=option("--url", metavar="URL", help="Address that the task puts under load."),
    from_har=option("--from-har", metavar="HAR", help="Make the task from a browser's recording."),
    hosts=repeated_option(
        "--host",
        metavar="HOST",
        help="With --from-har: make requests to this host, instead of the page's; may be repeated.",
    ),
    with_assets=flag(
        "--with-assets", help="With --from-har: keep images, fonts, styles and scripts."
    ),
    from_openapi=option(
        "--from-openapi",
        metavar="SPEC",
        help="Make the task from an OpenAPI 3 or Swagger 2 document.",
    ),
)
@option_set(AccessLogOptions, "log")
def init(
    file: str,
    url: str | None,
    from_har: str | None,
    hosts: tuple[str, ...],
    with_assets: bool,
    from_openapi: str | None,
    log: AccessLogOptions,
) -> None:
    """Write a task to FILE (task.yaml): a flow that runs as it is.

    \b
    Examples:
      osbench-coord init --url http://127.0.0.1:8080/items
      osbench-coord init nightly.yaml
      osbench-coord init shop.yaml --from-har shop.har
      osbench-coord init shop.yaml --from-openapi shop-api.yaml
      osbench-coord init load.yaml --from-access-log access.log --base http://127.0.0.1:8080
    """
    target = Path(file)
    refuse_existing(target)
    if from_har is not None:
        options = RecordingOptions(hosts=hosts, assets=with_assets)
        _write_flow(target, read_recording("har", from_har, options))
    elif from_openapi is not None:
        _write_flow(target, read_recording("openapi", from_openapi, RecordingOptions()))
    elif log.from_access_log is not None:
        _write_replay(target, log, log.from_access_log)
    else:
        write_new(target, first_task(target.name, url or ADDRESS))
        echo(f"wrote {file}; run it with: osbench-coord run {file}", err=True)


def _write_replay(target: Path, log: AccessLogOptions, file: str) -> None:
    arrivals = target.with_suffix(".arrivals")
    refuse_existing(arrivals)
    options = RecordingOptions(
        base=_checked_base(log.base),
        all_methods=log.all_methods,
        log_fields=log.log_fields,
        arrivals=arrivals,
        progress=ReadingProgress(file),
    )
    flow = read_recording("access-log", file, options)
    for line in flow.found:
        echo(line, err=True)
    _write_flow(target, flow)
    echo(f"wrote {arrivals}; keep it next to the task", err=True)


class ReadingProgress:
    """Prints how far a long file is read, to standard error, every `EVERY_S` seconds."""

    EVERY_S = 5.0

    def __init__(self, name: str) -> None:
        self._name = name
        self._due_s = time.monotonic() + self.EVERY_S

    def __call__(self, read: int, size: int, lines: int) -> None:
        """Print the share of the bytes that are read, and the number of lines, if it is due."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + self.EVERY_S
        share = f"{min(read / size, 1):.0%}" if size else "all"
        echo(f"reading {plain(self._name, 200)}: {share}, {count(lines, 'line')}", err=True)


def _checked_base(base: str | None) -> str:
    """Return the URL `base`, "" for None. Raises UsageError if no paths can be put on it."""
    if base is None:
        return ""
    if not is_http(base):
        raise UsageError(f"--base must begin with http:// or https://, got {mask_url(base)!r}")
    if fault := base_fault(base):
        raise UsageError(f"--base: {fault}; write http://HOST:PORT/PATH")
    return base


def _write_flow(target: Path, flow: FlowTask) -> None:
    # requests of a recording may hold secrets that nothing shows to be some
    write_new(target, flow_task_text(flow, target.name), private=True)
    left_out = f"; left out: {flow.omissions()}" if flow.omissions() else ""
    said = f"wrote {target}: {count(flow.made(), 'request')}{left_out}"
    echo(f"{said}; check it with: {flow.check_command(str(target))}", err=True)


@click.group(cls=Group)
def config() -> None:
    """Look at the configuration."""


@config.command("show")
@with_settings
def config_show(settings: CommandSettings) -> None:
    """Print the effective value of every option; secrets are masked.

    \b
    Example:
      osbench-coord config show
    """
    conf = settings.conf
    for group, declared in OPTIONS.items():
        echo(f"[{group}]")
        values = conf if group == "DEFAULT" else conf[group]
        for one in declared:
            value = values[one.dest]
            shown = "***" if one.secret and value is not None else value
            echo(f"{one.name} = {'' if shown is None else shown}")
        echo("")


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in your shell.

    \b
    Example, for bash:
      osbench-coord completion bash > ~/.local/share/bash-completion/completions/osbench-coord
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    script = kind(root.command, {}, "osbench-coord", "_OSBENCH_COORD_COMPLETE")
    echo(script.source())
