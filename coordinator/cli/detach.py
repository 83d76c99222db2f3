"""`run --detach`: runs the same command in the background and returns its id."""

from __future__ import annotations

import sys
import time

from osbench.common.errors import OsbenchError
from osbench.coordinator.run.plan import new_run_id
from osbench.coordinator.storage.detached_run import DetachedRun

#: Longest wait for the run to begin, seconds.
BEGIN_S = 20.0


def start_detached(data_dir: str, given_id: str) -> str:
    """Start this command line again in the background; return the run's id once it has begun.

    The id is `given_id`, or new if that is "". Its output goes to `<data_dir>/detached/RUN.log`.
    Raises OsbenchError, with that output, if the process ends before the run begins, or after
    `BEGIN_S` seconds; the process goes on then. Raises ConfigError if the data directory cannot be
    written.
    """
    run_id = given_id or new_run_id()
    given = [argument for argument in sys.argv[1:] if argument != "--detach"]
    child = DetachedRun(data_dir, run_id, [*given, "--run-id", run_id])
    deadline = time.monotonic() + BEGIN_S
    while not child.begun:
        code = child.exit_code
        if code is not None or time.monotonic() > deadline:
            text = child.output().strip().removeprefix("Error: ")
            error = OsbenchError(text or "the run did not begin")
            error.exit_code = code or 2
            raise error
        time.sleep(0.05)
    return run_id
