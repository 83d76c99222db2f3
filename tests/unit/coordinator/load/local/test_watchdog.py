"""Whose processes the watchdog of local mode ends, and whose it leaves alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.lifeline import Lifeline

#: Says "ready" once it has done what it is asked to, then sleeps.
SLEEPER = "print('ready', flush=True); import time; time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
PARENT = (
    "import subprocess, sys, time; "
    "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)']); "
    "print(child.pid, flush=True); "
)

#: Takes SIGTERM as a supervisor that gives its child time, and ends as the child ended.
WAITS_FOR_ITS_CHILD = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: None)
code = 'import os, time; time.sleep(0.5); os._exit(42)'
child = subprocess.Popen([sys.executable, '-S', '-c', code])
print('ready', flush=True)
sys.exit(child.wait())
"""

Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start() -> Iterator[Start]:
    started = []

    def run(code: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_process_that_heeds_sigterm_ends_by_it(start: Start) -> None:
    process, _ = start(SLEEPER)

    watchdog.end([found(process)], grace_s=60)

    assert process.wait() == -signal.SIGTERM


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(start: Start) -> None:
    process, _ = start(DEAF)

    watchdog.end([found(process)], grace_s=0.1)

    assert process.wait() == -signal.SIGKILL


def test_a_process_that_ignores_sigterm_is_killed_earlier_for_who_is_in_a_hurry(
    start: Start,
) -> None:
    process, _ = start(DEAF)
    looks = iter([False, False, True])

    watchdog.end([found(process)], 600.0, hurried=lambda: next(looks))

    assert process.wait() == -signal.SIGKILL


def test_children_of_a_dead_leader_are_ended(start: Start) -> None:
    process, child = start(PARENT)
    leader = found(process)
    process.wait()

    watchdog.end([leader], grace_s=0)

    assert not alive(int(child))


def test_a_process_in_another_session_is_found_by_its_mark(start: Start) -> None:
    process, _ = start(SLEEPER, **{watchdog.MARK: "/nowhere/osbench-a"})

    there = list(watchdog.belonging([], "/nowhere/osbench-a"))
    others = list(watchdog.belonging([], "/nowhere/osbench"))

    assert there == [found(process)]
    assert others == []


def test_a_later_process_with_the_pid_of_a_leader_is_left_alone(start: Start) -> None:
    process, _ = start(SLEEPER)
    gone = found(process)._replace(start=found(process).start - 1)

    watchdog.end([gone], grace_s=0)

    assert process.poll() is None


def test_children_of_a_leader_that_ends_at_sigterm_are_asked_to_end_too(start: Start) -> None:
    process, child = start(PARENT + "import time; time.sleep(600)")

    watchdog.end([found(process)], grace_s=60)

    assert process.wait() == -signal.SIGTERM
    assert not alive(int(child))


def test_children_are_not_asked_while_their_leader_lives(start: Start) -> None:
    process, _ = start(WAITS_FOR_ITS_CHILD)

    watchdog.end([found(process)], grace_s=60)

    assert process.wait() == 42


def test_a_marked_session_is_asked_when_its_parent_is_gone(start: Start) -> None:
    process, _ = start(SLEEPER, **{watchdog.MARK: "/nowhere/osbench-b"})
    parent, _ = start(SLEEPER)
    leader = found(parent)
    parent.kill()
    parent.wait()

    watchdog.end([leader], grace_s=60, folder="/nowhere/osbench-b")

    assert process.wait() == -signal.SIGTERM


def test_a_marked_session_can_be_spared(start: Start) -> None:
    workers, _ = start(SLEEPER, **{watchdog.MARK: "/nowhere/osbench-c"})
    server, _ = start(SLEEPER, **{watchdog.MARK: "/nowhere/osbench-c"})

    watchdog.end([found(workers)], 60, "/nowhere/osbench-c", [found(server)])

    assert workers.wait() == -signal.SIGTERM
    assert server.poll() is None


def test_a_command_with_blanks_and_brackets_in_its_name_is_read_right(start: Start) -> None:
    rename = "open('/proc/self/comm', 'w').write('a) R 1 (b'); "
    process, _ = start(rename + SLEEPER)
    leader = found(process)

    members = list(watchdog.belonging([leader], None))

    assert members == [leader]


def found(process: subprocess.Popen[str]) -> watchdog.Process:
    one = watchdog.find(process.pid)
    assert one is not None
    return one


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_waiting_for_leaders_ends_with_the_first_that_has_ended(start: Start) -> None:
    lives, _ = start(SLEEPER)
    ends, _ = start(SLEEPER)
    leaders = set(map(found, (lives, ends)))
    # nobody has waited for it: what is left of it counts as ended
    ends.kill()

    # the other one sleeps for longer than a test may take
    watchdog._await_end(leaders, 600.0)

    assert lives.poll() is None


def test_waiting_for_leaders_that_go_on_takes_as_long_as_it_may(start: Start) -> None:
    lives, _ = start(SLEEPER)

    begun = time.monotonic()
    watchdog._await_end({found(lives)}, 0.1)

    assert time.monotonic() - begun >= 0.1


@pytest.mark.parametrize("ended", [False, True])
def test_a_watchdog_looks_for_no_process_once_all_are_said_to_have_ended(
    start: Start, ended: bool
) -> None:
    process, _ = start(SLEEPER)
    lifeline = Lifeline()
    lifeline.register_process("workers", found(process))

    if ended:
        lifeline.register_end()
    lifeline.close()

    assert alive(process.pid) is ended


def test_ending_processes_reports_that_they_have_ended(start: Start) -> None:
    process, _ = start(SLEEPER)

    assert watchdog.end([found(process)], grace_s=60) is True


def test_a_leader_is_asked_to_end_before_others_are_looked_for(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, _ = start(SLEEPER)
    seen = []

    def look(*_: object) -> list[watchdog.Process]:
        seen.append(process.wait(60))
        return []

    monkeypatch.setattr(watchdog, "belonging", look)
    watchdog.end([found(process)], grace_s=60)

    assert seen == [-signal.SIGTERM]
