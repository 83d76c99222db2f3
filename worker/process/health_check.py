"""Health check of the worker processes of this host: whether one hangs. Contacts no server."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench.worker.process.life_record import LifeRecord, living

#: What a process may do without a sign of life, seconds: a reply of Redis and a look-up of its name
#: take less.
HANG_S = 60.0


def host_name() -> str:
    """Return this host's name in the form with which incarnations begin.

    Characters other than letters, digits and hyphens become hyphens.
    """
    return "".join(c if c.isalnum() or c == "-" else "-" for c in socket.gethostname())


def process_record(conf: cfg.ConfigOpts, incarnation: str) -> LifeRecord:
    """Create the life record of this worker process; remove records of dead processes of this host.

    The file is in the data directory. Raises ConfigError if it cannot be written.
    """
    directory = _processes(conf)
    # records of dead processes would be looked for in Redis
    living(directory, host_name())
    return LifeRecord(directory / incarnation, {"label": conf.worker.label})


def supervisor_record(conf: cfg.ConfigOpts, pid: int, processes: int) -> LifeRecord:
    """Create the life record of the supervisor `pid`, which keeps `processes` worker processes.

    The file is in the data directory. Raises ConfigError if it cannot be written.
    """
    path = _supervisors(conf) / f"{host_name()}.{pid}"
    return LifeRecord(path, {"label": conf.worker.label, "processes": processes})


def _processes(conf: cfg.ConfigOpts) -> Path:
    return Path(conf.data_dir) / "workers"


def _supervisors(conf: cfg.ConfigOpts) -> Path:
    return Path(conf.data_dir) / "supervisors"


def _of_label(conf: cfg.ConfigOpts, directory: Path) -> dict[str, dict[str, Any]]:
    found = living(directory, host_name())
    return {name: one for name, one in found.items() if conf.worker.label in ("", one.get("label"))}


def recorded_names(conf: cfg.ConfigOpts) -> list[str]:
    """Return the incarnations of this host's living worker processes, sorted, from their records.

    Only of this data directory, but of all labels.
    """
    return sorted(living(_processes(conf), host_name()))


def recorded_processes(conf: cfg.ConfigOpts) -> int:
    """Return how many worker processes this host's living supervisors are to keep running.

    Only of this data directory; with `[worker] label`, only processes with that label.
    """
    return sum(int(one["processes"]) for one in _of_label(conf, _supervisors(conf)).values())


def states(conf: cfg.ConfigOpts) -> list[str]:
    """Return the states of this host's living worker processes, sorted, from their records.

    Only of this data directory; with `[worker] label`, only of processes with that label.
    """
    return sorted(one["state"] for one in _of_label(conf, _processes(conf)).values())


def complaints(conf: cfg.ConfigOpts, hang_s: float = HANG_S) -> list[str]:
    """Return a message for each supervisor and worker process that hangs; empty if none does.

    A process hangs without a sign of life or progress for `hang_s` seconds, or if it is stuck. If
    no supervisor runs, the only message reports that. With `[worker] label`, only processes with
    that label count. Contacts no server.
    """
    supervisors, processes = (_of_label(conf, of(conf)) for of in (_supervisors, _processes))
    if not supervisors:
        return [f"no osbench-worker runs here with the data directory {conf.data_dir}"]
    found = [_complaint("supervisor", name, one, hang_s) for name, one in supervisors.items()]
    found += [_complaint("worker process", name, one, hang_s) for name, one in processes.items()]
    return [one for one in found if one]


def _complaint(kind: str, name: str, record: Mapping[str, Any], hang_s: float) -> str:
    who = f"{kind} {name.split('.')[1]}"
    silent_s = time.monotonic() - record["told"]
    idle_s = record["told"] - record["turned"]
    if silent_s > hang_s:
        return f"{who} gave no sign of life for {silent_s:.0f} s"
    if idle_s > hang_s:
        return f"{who} does not follow its run for {idle_s:.0f} s"
    if record["state"] == "stuck":
        return f"{who} is stuck: its iterations continue after their timeout"
    return ""
