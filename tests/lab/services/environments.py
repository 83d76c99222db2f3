"""An OpenStack service's own virtual environment: made once from exact pins, then kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from services.faults import Unavailable

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
#: Makes an environment and installs into it.
MAKER = Path(__file__).parents[3] / ".ci" / "environment.py"


def cache() -> Path:
    """Where environments are kept: OSBENCH_LAB_DIR, else ~/.cache/osbench-lab."""
    named = os.environ.get("OSBENCH_LAB_DIR")
    return Path(named) if named else Path.home() / ".cache" / "osbench-lab"


def environment(name: str, requirements: Path | None = None) -> Path:
    """The folder of an environment with a service's pins, created if it does not exist.

    Raises Unavailable where the packages cannot be had.
    """
    requirements = requirements or REQUIREMENTS / f"{name}.txt"
    pins = requirements.read_bytes()
    identity = hashlib.sha256(pins + sys.version.encode()).hexdigest()[:16]
    folder = cache() / f"{name}-{identity}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            _make(folder, requirements)
    return folder


def install(names: Iterable[str], at_once: int = 2) -> dict[str, Path]:
    """The environments of several services, a few of them made at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        made = {name: pool.submit(environment, name) for name in names}
        return {name: future.result() for name, future in made.items()}


def _make(folder: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    for command in (
        [sys.executable, str(MAKER), "--bare", str(folder), "--no-deps", "-r", str(requirements)],
        [*pip, "--python", str(folder / "bin" / "python"), "check"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join((done.stdout + done.stderr).splitlines()[-2:])
            raise Unavailable(f"the environment of {folder.name} cannot be made: {said}")
    (folder / ".done").touch()
