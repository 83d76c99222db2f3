"""`run --detach`: the same command in the background, its id known before it starts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from osbench.common.errors import OsbenchError
from osbench.coordinator.storage.run_retention import check_writable

#: Longest wait for the run to begin, seconds.
BEGIN_S = 20.0


def start_detached(data_dir: str, run_id: str) -> str:
    """Start this command again in the background; returns the run's id once it has begun.

    Its output goes to `<data_dir>/detached/RUN.log`. Raises OsbenchError, with the end of that
    file, where the run does not begin, and ConfigError where the data directory cannot be written.
    """
    check_writable(data_dir)
    log = Path(data_dir) / "detached" / f"{run_id}.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = [argument for argument in sys.argv[1:] if argument != "--detach"]
    command = [sys.executable, "-P", "-m", "osbench.coordinator.main", *given, "--run-id", run_id]
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603 - our own command line once more
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    begun = Path(data_dir) / "runs" / run_id / "run.json"
    deadline = time.monotonic() + BEGIN_S
    while not begun.exists():
        if child.poll() is not None or time.monotonic() > deadline:
            text = log.read_text("utf-8", "replace").strip().removeprefix("Error: ")
            error = OsbenchError(text or "the run did not begin")
            error.exit_code = child.returncode or 2
            raise error
        time.sleep(0.05)
    return run_id
