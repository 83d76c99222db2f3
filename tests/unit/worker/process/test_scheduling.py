"""What a worker process asks of the kernel; in processes of its own, since it cannot be undone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import logging, os, sys, threading
logging.basicConfig(level=logging.INFO, format="%(message)s")
from osbench.worker.process import scheduling
"""
NOBODY = 65534


def run(lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + lines], capture_output=True, text=True, check=False
    )


def test_a_slice_is_shortened_or_the_log_says_why_not() -> None:
    done = run("scheduling.shorten_slice()\nprint(scheduling._refusal_of_slice() or 'short')")

    assert done.returncode == 0, done.stderr
    assert (done.stdout == "short\n") == (done.stderr == "")
    if done.stderr:
        assert done.stderr.startswith("no short slices: ")
        assert len(done.stderr.splitlines()) == 1


def test_niceness_stays() -> None:
    done = run("print(os.nice(2))\nscheduling.shorten_slice()\nprint(os.nice(0))")

    before, after = done.stdout.split()
    assert before == after, done.stderr


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("scheduling.platform.machine = lambda: 'abacus'", "unknown on abacus"),
        (
            "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
            "the scheduling policy is not the ordinary one",
        ),
        ("scheduling.SLICE_NS = 0", "Linux 6.12 or newer has them"),
    ],
)
def test_where_there_are_no_short_slices_the_log_says_so(change: str, why: str) -> None:
    done = run(f"{change}\nscheduling.shorten_slice()")

    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"no short slices: {why};")


def test_realtime_is_refused_with_what_to_change() -> None:
    drop = f"os.setuid({NOBODY})\n" if os.getuid() == 0 else ""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))\n"

    # at once: what measures coverage may not write its file as this user, and would say so
    done = run(
        f"{limit}{drop}try:\n    scheduling.begin_realtime()\n"
        "except Exception as error:\n    print(type(error).__name__, error, flush=True)\n"
        "    os._exit(1)\n"
    )

    assert done.returncode == 1
    assert done.stdout.startswith("ConfigError [worker] realtime: the kernel refuses SCHED_RR")
    assert "LimitRTPRIO=" in done.stdout


def test_realtime_is_that_of_all_threads() -> None:
    done = run(
        "try:\n    scheduling.begin_realtime()\nexcept Exception:\n    sys.exit(77)\n"
        "def tell(): print(os.sched_getscheduler(0) == os.SCHED_RR)\n"
        "one = threading.Thread(target=tell)\none.start()\none.join()\ntell()"
    )
    if done.returncode == 77:
        pytest.skip("SCHED_RR is not allowed here")

    assert done.stdout == "True\nTrue\n", done.stderr
