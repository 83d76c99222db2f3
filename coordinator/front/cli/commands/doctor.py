"""The command `doctor`: prints the causes that would make a run fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import click

from osbench.common.errors import OsbenchError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import CommandSettings, echo_json, echo_table, with_settings
from osbench.coordinator.front.cli.options.option_table import options
from osbench.coordinator.front.cli.options.shared_options import json_flag, plugin_paths
from osbench.coordinator.front.cli.time_limit import time_limit
from osbench.coordinator.front.doctor.diagnosis import ERROR, OK, WARNING, Diagnosis
from osbench.coordinator.front.doctor.host_checks import look_at_certificates, look_at_host
from osbench.coordinator.front.doctor.redis_checks import look_at_redis, look_at_workers
from osbench.coordinator.text_table import TextTable, names, texts

_SIGNS = {OK: "ok", WARNING: "warning", ERROR: "ERROR"}


@click.command()
@options(as_json=json_flag("a list of the findings"), plugin_path=plugin_paths())
@time_limit()
@with_settings
def doctor(settings: CommandSettings, as_json: bool, plugin_path: tuple[str, ...]) -> int:
    """Find reasons why a run would fail, before there is load.

    Redis (version, eviction, memory, rights of its user, clock), certificates, the broker, key
    file, data directory, deployment records, plug-ins, limits of this host, and the workers. Exits
    with 1 where a run would fail, else with 0.

    \b
    Examples:
      osbench-coord doctor
      osbench-coord doctor --plugin-path scenarios --json
    """
    findings = list(_findings(settings, plugin_path))
    if as_json:
        echo_json([dataclasses.asdict(one) for one in findings])
    else:
        table = TextTable(names("", "what"), texts("found", "what to do"))
        for one in findings:
            table.add_row(_SIGNS[one.state], one.about, _line(one.detail), _line(one.remedy))
        echo_table(table)
    return int(any(one.state == ERROR for one in findings))


def _line(text: str) -> str:
    return plain(text, 500)


def _findings(settings: CommandSettings, plugin_path: tuple[str, ...]) -> Iterator[Diagnosis]:
    conf = settings.conf
    paths = (*conf.coordinator.plugin_path, *plugin_path)
    yield from look_at_host(conf, Plugins(paths))
    yield from look_at_certificates(conf)
    yield from look_at_redis(conf)
    yield from _broker(settings)
    yield from look_at_workers(conf)


def _broker(settings: CommandSettings) -> Iterator[Diagnosis]:
    messaging = settings.conf.messaging
    if not messaging.redis_url or not messaging.broker_url:
        return
    # Celery is slow to import, and few configurations need it here
    from osbench.common.protocol import broker  # noqa: PLC0415 - see above

    try:
        broker.check(messaging.broker_url, messaging.redis_timeout_s)
    except OsbenchError as error:
        yield Diagnosis(about="broker", state=ERROR, detail=str(error))
    else:
        yield Diagnosis(about="broker", state=OK, detail="responds and accepts the login")
