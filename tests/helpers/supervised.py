"""A supervisor whose worker processes only note on their page, and such a process.

Run as `python -m helpers.supervised CONFIG_FILE`; its processes are `... child`. Each adds a line
with its pid to the file "pids" beside the configuration, once its page says what it has taken.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from osbench.common.config.config import load
from osbench.worker.engine.will_page import WillPage
from osbench.worker.process import supervisor


def child() -> None:
    """A process in a run, of which it took number 7 of batch 3; SIGTERM makes it leave first."""
    parser = argparse.ArgumentParser()
    for name in ("--page", "--complaints"):
        parser.add_argument(name, type=int)
    parser.add_argument("--config-file")
    given, _ = parser.parse_known_args(sys.argv[2:])
    page = WillPage(given.page, f"host.{os.getpid()}.aa")
    page.join("run-1", f"{os.getpid():032x}")
    page.serve(0, is_open=False)
    page.reach(3, 7)

    def leave(*_: object) -> None:
        page.leave()
        sys.exit(0)

    signal.signal(signal.SIGTERM, leave)
    os.close(given.complaints)
    with Path(given.config_file).with_name("pids").open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    while True:
        time.sleep(1)


def main() -> None:
    """Supervise one such process."""
    file = sys.argv[1]
    conf = load([file])
    conf.set_override("processes", 1, group="worker")
    supervisor.CHILD_COMMAND = (sys.executable, "-m", "helpers.supervised", "child")
    sys.exit(supervisor.Supervisor(conf, [file], []).run())


if __name__ == "__main__":
    child() if sys.argv[1] == "child" else main()
