"""An OpenStack service's own virtual environment: made once from exact pins, then kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from servers import missing


def cache() -> Path:
    """Where environments are kept: OSBENCH_LAB_DIR, else ~/.cache/osbench-lab."""
    named = os.environ.get("OSBENCH_LAB_DIR")
    return Path(named) if named else Path.home() / ".cache" / "osbench-lab"


def environment(name: str, requirements: Path) -> Path:
    """The folder of an environment with these pins, made where it is not there yet.

    Skips the test where the packages cannot be had, which in CI is a failure.
    """
    pins = requirements.read_bytes()
    identity = hashlib.sha256(pins + sys.version.encode()).hexdigest()[:16]
    folder = cache() / f"{name}-{identity}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            _make(folder, requirements)
    return folder


def _make(folder: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, "install", "--quiet", "--no-deps", "-r", str(requirements)],
        [*pip, "check"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join((done.stdout + done.stderr).splitlines()[-2:])
            missing(f"the environment of {folder.name} cannot be made: {said}")
    (folder / ".done").touch()
