"""The command `osbench-worker`: supervisor, worker processes, and their health checks."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

from osbench import __version__
from osbench.common.config import logs
from osbench.common.config.certificates import shown_url
from osbench.common.config.config import load
from osbench.common.config.foreign_environment import (
    drop_foreign_variables,
    ignored_variables_note,
)
from osbench.common.config.standard_streams import secure_standard_streams
from osbench.common.errors import ConfigError, OsbenchError, UsageError
from osbench.common.text.escaping import escaped, one_line
from osbench.worker.process import resting
from osbench.worker.process.health_check import complaints, recorded_processes, states
from osbench.worker.process.supervisor import CHILD_COMMAND, Supervisor, process_count
from osbench.worker.process.supervisor_life import SupervisorLife

_LOG = logging.getLogger(__name__)

#: Loggers that write two lines per message at INFO.
_VERBOSE_LOGGERS = ("celery.worker.strategy", "celery.app.trace")
#: States of living processes that take no work.
_UNREADY = ("draining", "stuck")

EPILOG = """
\b
Examples:
  osbench-worker                                one process per core, osbench.conf as found
  osbench-worker --processes 4 --label rack-7
  osbench-worker --plugin-path ./scenarios      the same plug-ins as the coordinator has
  osbench-worker --check                        do they take work? for probes and scripts
  osbench-worker --check alive                  does none hang? asks no Redis

SIGTERM or Ctrl-C drains: running iterations end, the rest is returned.
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config-file", multiple=True, metavar="FILE", help="osbench.conf to read.")
@click.option(
    "--processes", type=click.IntRange(0), metavar="N", help="Worker processes; 0 is one per core."
)
@click.option(
    "--virtual-users",
    type=click.IntRange(1),
    metavar="N",
    help="Virtual users (concurrent iterations) of each process.",
)
@click.option("--label", help="Name shown for this host's workers.")
@click.option(
    "--plugin-path",
    multiple=True,
    metavar="PATH",
    help="Python file, or directory of them, to load plug-ins from; may be repeated.",
)
@click.option(
    "--metrics",
    metavar="[ADDR:]PORT",
    help="Serve metrics of the processes for Prometheus; on 127.0.0.1 without ADDR.",
)
@click.option(
    "--check",
    is_flag=False,
    flag_value="ready",
    type=click.Choice(("ready", "alive")),
    metavar="[ready|alive]",
    help="Start no worker. By default, or with `ready`: exit with 0 if all worker processes of "
    "this host take work, by their heartbeats in Redis, 1 if some do not or none run, 3 if Redis "
    "does not respond. With `alive`: 0 unless a process hangs or none runs; asks no Redis.",
)
@click.option("--private", is_flag=True, hidden=True, help="The server is there for these workers.")
@click.option("--prepared", is_flag=True, hidden=True, help="Arguments come on standard input.")
@click.option("--lifeline", type=int, hidden=True, help="Pipe that closes with the supervisor.")
@click.option("--complaints", type=int, hidden=True, help="Pipe for the error of a failed start.")
@click.option("--page", type=int, hidden=True, help="Memory to note the cost of users in.")
@click.version_option(__version__, prog_name="osbench-worker")
def main(  # noqa: PLR0913 - one per option of the command
    config_file: tuple[str, ...],
    processes: int | None,
    virtual_users: int | None,
    label: str | None,
    plugin_path: tuple[str, ...],
    metrics: str | None,
    check: str | None,
    private: bool,
    prepared: bool,
    lifeline: int | None,
    complaints: int | None,
    page: int | None,
) -> None:
    """Serve runs: claim iterations from a coordinator, run them, send back the measurements.

    Workers find their coordinator through the Redis of osbench.conf ([messaging] redis_url)
    and accept only messages signed with its key file ([security] key_file).
    """
    secure_standard_streams()
    drop_foreign_variables(os.environ)
    if prepared:
        _begin_prepared()
        return
    rested = resting.take_state()
    try:
        given = {"processes": processes, "virtual_users": virtual_users, "label": label}
        conf = _configuration(config_file, **given, metrics_address=metrics)
        logs.begin(conf.log_level, process=True)
        if conf.log_level == "INFO":
            for name in _VERBOSE_LOGGERS:
                logging.getLogger(name).setLevel(logging.WARNING)
        if check:
            sys.exit(_check_alive(conf) if check == "alive" else _check_ready(conf, processes))
        if lifeline is not None and complaints is not None:
            _serve(conf, list(plugin_path), lifeline, complaints, page, private)
        if rested is None:
            _say_start(conf, plugin_path, private)
        if private:
            sys.exit(_supervisor(conf, config_file, plugin_path, private=True, rested=rested).run())
        sys.exit(_supervise(conf, config_file, plugin_path, rested))
    except OsbenchError as error:
        click.echo(escaped(f"osbench-worker: {error}", breaks=True), err=True)
        if rested is not None and isinstance(error, ConfigError):
            resting.go_on(rested, [*CHILD_COMMAND, *sys.argv[1:]])
        sys.exit(error.exit_code)


def _begin_prepared() -> None:
    """Import the modules of worker processes, then run the command with the arguments that come.

    Ends this process afterwards; returns only if no arguments come on standard input.
    """
    # other starts need none of these modules so early
    from osbench.worker.process import prepared_start, process  # noqa: PLC0415 - see above

    arguments = prepared_start.await_arguments()
    if arguments is None:
        return
    sys.argv[1:] = arguments
    try:
        main.main(arguments, prog_name="osbench-worker")
    except SystemExit as ended:
        # Python would take its time to tidy all modules up
        process.end(ended.code if isinstance(ended.code, int) else 1)


def _serve_forked(arguments: Sequence[str]) -> None:
    main.main(list(arguments), prog_name="osbench-worker")


_supervisor = partial(Supervisor, serve=_serve_forked)


def _supervise(
    conf: Any,
    config_files: Sequence[str],
    plugin_paths: Sequence[str],
    rested: Mapping[str, Any] | None,
) -> int:
    # nothing runs yet that would have to be drained
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    life = SupervisorLife(conf, process_count(conf))
    if rested is not None:
        # the new record replaces that of the rest
        os.close(rested["life"]["fd"])
    try:
        if rested is None:
            # problems that every process would have are reported once
            _ready(conf, plugin_paths, life)
        return _supervisor(conf, config_files, plugin_paths, life=life, rested=rested).run()
    finally:
        life.close()


def _serve(
    conf: Any,
    plugin_paths: list[str],
    lifeline: int,
    complaints: int,
    page: int | None,
    private: bool,
) -> None:
    # Celery is slow to import, and neither a probe nor the supervisor needs it
    from osbench.worker.process import process  # noqa: PLC0415 - see above

    with os.fdopen(complaints, "w", encoding="utf-8", errors="replace") as pipe:
        try:
            code = process.main(conf, plugin_paths, lifeline, page, pipe.close, private=private)
        except OsbenchError as error:
            code = error.exit_code
            if pipe.closed:
                click.echo(escaped(f"osbench-worker: {error}", breaks=True), err=True)
            else:
                pipe.write(str(error))
    process.end(code)


def _say_start(conf: Any, plugin_paths: Sequence[str], private: bool) -> None:
    click.echo(escaped(_startup_line(conf, plugin_paths)), err=True)
    note = "" if private else ignored_variables_note(os.environ)
    if note:
        _LOG.warning(note)


def _startup_line(conf: Any, plugin_paths: Sequence[str]) -> str:
    count, users = process_count(conf), conf.worker.virtual_users
    label = f" ({conf.worker.label})" if conf.worker.label else ""
    places = [f"Redis {shown_url(conf.messaging.redis_url)}"]
    if conf.messaging.broker_url:
        places.append(f"broker {shown_url(conf.messaging.broker_url)}")
    paths = [*conf.worker.plugin_path, *plugin_paths]
    places.append(f"plug-ins from {', '.join(paths)}" if paths else "no own plug-ins")
    return (
        f"osbench-worker on {socket.gethostname()}{label}: {count} "
        f"{'process' if count == 1 else 'processes'} of {users} virtual users; {', '.join(places)}"
    )


def _ready(conf: Any, plugin_paths: Sequence[str], life: SupervisorLife) -> None:
    """Check key file and plug-in paths, then wait for Redis, without a limit of time.

    Raises OsbenchError if a file is missing or Redis is unusable.
    """
    # imported here, since somebody waits for the workers of local mode
    from osbench.common.plugin import plugin_files  # noqa: PLC0415 - see above
    from osbench.common.protocol import redis_client  # noqa: PLC0415 - see above
    from osbench.common.protocol.keyring import Keyring  # noqa: PLC0415 - see above
    from osbench.common.protocol.waiting import wait_until_there  # noqa: PLC0415 - see above

    Keyring.load(conf.security.key_file)
    for path in (*conf.worker.plugin_path, *plugin_paths):
        plugin_files.files_of(path)
    url = conf.messaging.redis_url

    def look() -> None:
        life.tell("waiting")
        redis_client.check(client, url)

    with redis_client.connect(url, conf.messaging.redis_timeout_s) as client:
        wait_until_there(look, _say)


def _say(what: str) -> None:
    click.echo(one_line(f"osbench-worker: {what}"), err=True)


def _check_alive(conf: Any) -> int:
    hanging = complaints(conf)
    running = Counter(states(conf))
    told = ", ".join(f"{count} {state}" for state, count in running.items()) or "none has started"
    click.echo(one_line("; ".join(hanging) or f"worker processes: {told}"))
    return int(bool(hanging))


def _check_ready(conf: Any, processes: int | None) -> int:
    # the supervisor does not need the modules that read messages
    from osbench.worker.process.heard_processes import heard_states  # noqa: PLC0415 - see above

    # what was asked for, else what runs here, else what would run here
    expected = processes or recorded_processes(conf) or process_count(conf)
    heard = Counter(heard_states(conf))
    busy = {state: heard.pop(state) for state in _UNREADY if state in heard}
    ready = heard.total()
    others = "".join(f", {count} {state}" for state, count in busy.items())
    click.echo(f"{ready} of {expected} worker processes are heard and take work{others}")
    return int(ready < expected)


def _configuration(config_files: Sequence[str], **given: Any) -> Any:
    """Return the configuration, overridden by the options in `given` that are not None.

    Raises ConfigError for a faulty file, and UsageError without a Redis.
    """
    conf = load(config_files)
    for name, value in given.items():
        if value is not None:
            conf.set_override(name, value, group="worker")
    if not conf.messaging.redis_url:
        raise UsageError(
            "[messaging] redis_url is not set: a worker needs the Redis that its "
            "coordinator uses. Write it into osbench.conf"
        )
    return conf


if __name__ == "__main__":
    main()
