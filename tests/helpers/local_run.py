"""A coordinator in local mode with a stand-in for its workers, to be ended in some way by a test.

As a coordinator: prints the private folder once all is there, then leaves the `with` block in
the way its arguments say. As a worker (`--worker`): starts a child process and sleeps. With
`--real` the workers are those of osbench.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from osbench.common.config import config
from osbench.common.protocol import redis_client, redis_keys
from osbench.coordinator.load.local.local_mode import LocalMode
from osbench.coordinator.load.local.local_start import LocalStart

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


def work(arguments: list[str]) -> None:
    if "--deaf" in arguments:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(SLEEP)
    if "--stray" in arguments:
        subprocess.Popen(SLEEP, start_new_session=True)
    print("there", flush=True)
    time.sleep(600)


def is_there(local: LocalMode) -> bool:
    if "there" in local.worker_log.read_text():
        return True
    with redis_client.connect(local.redis_url, 5.0) as client:
        return bool(client.keys(redis_keys.worker("*")))


def coordinate(ending: str, worker_arguments: list[str]) -> None:
    # tests that were started with nohup have it ignored
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with tempfile.NamedTemporaryFile() as empty:
        conf = config.load([empty.name])
    command: Sequence[str] = [sys.executable, __file__, "--worker", *worker_arguments]
    start = LocalStart() if "--real" in worker_arguments else None
    if ending == "early" and start is not None:
        print(start.folder, flush=True)
        time.sleep(600)
    with LocalMode(conf, 1, 8, start=start, worker_command=command) as local:
        local.drain_s = 0.5
        local.start_workers()
        while not is_there(local):
            local.check()
            time.sleep(0.02)
        if ending == "handle":
            signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
        if ending == "fork" and os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(600)
        print(local.folder, flush=True)
        if ending == "raise":
            raise RuntimeError("as told")
        while ending != "return":
            local.check()
            time.sleep(0.02)


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        work(sys.argv[2:])
    else:
        coordinate(sys.argv[1], sys.argv[2:])
