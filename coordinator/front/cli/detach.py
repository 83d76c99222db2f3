"""`run --detach`: runs the same command in the background and returns its id."""

from __future__ import annotations

import contextlib
import json
import sys
import time

from osbench.common.errors import OsbenchError
from osbench.coordinator.load.run.plan import new_run_id
from osbench.coordinator.results.storage.detached_run import DetachedRun

#: Between two looks at whether the run has begun, seconds.
LOOK_S = 0.05


def start_detached(data_dir: str, given_id: str) -> str:
    """Start this command line again in the background; return the run's id once it has begun.

    The id is `given_id`, or new if that is "". Its output goes to `<data_dir>/detached/RUN.log`.
    Waits as long as the process does, such as for Redis; Ctrl-C meanwhile interrupts the process,
    too. Raises OsbenchError, with that output, if the process ends before the run begins. Raises
    ConfigError if the data directory cannot be written, OSError if no process can be started.
    """
    run_id = given_id or new_run_id()
    given = [argument for argument in sys.argv[1:] if argument != "--detach"]
    child = DetachedRun(data_dir, run_id, [*given, "--run-id", run_id])
    try:
        while True:
            # before it is asked whether it has begun: it may do both meanwhile
            code = child.exit_code
            if child.begun:
                return run_id
            if code is not None:
                error = OsbenchError(_message(child.output().strip()) or "the run did not begin")
                error.exit_code = code if code > 0 else 2
                raise error
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        child.interrupt()
        raise


def _message(output: str) -> str:
    """Return the error message in the output of a command: of its JSON object, with `--json`."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error = json.loads(output)["error"]
        lines = (f"\n  {one['place']}: {one['message']}" for one in error["problems"])
        return f"{error['message']}{''.join(lines)}"
    return output.removeprefix("Error: ")
