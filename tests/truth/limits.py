"""Cases of what bound a load: each cause is planted, and must be the one that is named."""

from __future__ import annotations

import multiprocessing
import signal
import time

from truth import checks
from truth.case import Case
from truth.latencies import REQUEST
from truth.planting import Ground, Planting

ONE_PROCESS = {"worker": {"processes": 1}}
TWO_PROCESSES = {"worker": {"processes": 2}}


def max_concurrency(seconds: int = 8) -> Case:
    """Allow 20 iterations at once although the rate needs 100: it is the task that is wrong."""
    runner = {"rps": {"times": 200 * seconds, "rps": 200, "max_concurrency": 20}}
    return Case(
        name="max-concurrency",
        planted="open 200/s of 0.5 s, max_concurrency 20",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.5},
            workloads=[{"scenario": REQUEST, "runner": runner}],
        ),
        checks=[
            checks.bound("max_concurrency", fault="task"),
            checks.share("dropped", 0.7, 0.9),
            checks.exits(0),
        ],
    )


def threads_full() -> Case:
    """Keep all virtual users waiting for a slow service: the generator is not at fault."""
    return Case(
        name="users-full",
        planted="60/s of 1 s in 20 threads",
        planting=Planting(
            config={"worker": {"processes": 1, "virtual_users": 20}},
            workloads=[
                {
                    "scenario": {"Planted.sleep": {"sleep_s": 1.0}},
                    "runner": {"rps": {"times": 480, "rps": 60}},
                    "sla": {"start_lag": {"p": 99, "max_s": 0.1}},
                }
            ],
        ),
        checks=[checks.bound("service", fault="service"), checks.exits(1)],
    )


def shared_lock() -> Case:
    """Compute in several threads of one process: they share its interpreter's lock."""
    return Case(
        name="shared-lock",
        planted="4 threads that compute 20 ms each time",
        planting=Planting(
            config=ONE_PROCESS,
            workloads=[
                {
                    "scenario": {"Planted.compute": {"cpu_s": 0.02}},
                    "runner": {"constant_for_duration": {"duration": 8, "concurrency": 4}},
                }
            ],
        ),
        checks=[
            checks.bound("interpreter_lock", "generator_cpu", fault="generator"),
            checks.exits(4),
        ],
    )


def kept_lock() -> Case:
    """Keep the interpreter's lock within C code: not even heartbeats are sent meanwhile."""
    return Case(
        name="kept-lock",
        planted="C code keeps the lock for about 6 s once",
        planting=Planting(
            config=ONE_PROCESS,
            workloads=[
                {
                    "scenario": {"Planted.keep_lock": {"lock_s": 6.0, "at": 20}},
                    "runner": {"constant_for_duration": {"duration": 15, "concurrency": 4}},
                }
            ],
        ),
        checks=[checks.bound("interpreter_lock", fault="generator"), checks.exits(4, 3)],
    )


def _stop_worker(ground: Ground) -> None:
    ground.await_load(after_s=2)
    worker = ground.workers()[0]
    worker.send_signal(signal.SIGSTOP)
    time.sleep(8)
    worker.send_signal(signal.SIGCONT)


def _kill_worker(ground: Ground) -> None:
    ground.await_load()
    ground.workers()[0].kill()


def _calm(seconds: int) -> dict[str, object]:
    return {
        "scenario": {"Planted.sleep": {"sleep_s": 0.2}},
        "runner": {"rps": {"times": 20 * seconds, "rps": 20}},
    }


def stopped() -> Case:
    """Stop a worker process for 8 s, as a host that stands still does."""
    return Case(
        name="stopped",
        planted="SIGSTOP of the worker process for 8 s",
        planting=Planting(config=ONE_PROCESS, workloads=[_calm(20)], during=_stop_worker),
        checks=[checks.bound("stopped", fault="generator"), checks.exits(4, 3)],
    )


def worker_lost() -> Case:
    """Kill a worker process: what it had begun is lost."""
    return Case(
        name="worker-lost",
        planted="SIGKILL of one of two worker processes",
        planting=Planting(config=TWO_PROCESSES, workloads=[_calm(12)], during=_kill_worker),
        checks=[checks.bound("worker_lost", fault="generator"), checks.exits(3)],
    )


def blocked_loop() -> Case:
    """Block the event loop: the place in the scenario must be named."""
    return Case(
        name="blocked-loop",
        planted="time.sleep(0.2) in a coroutine; 10 users for 6 s",
        planting=Planting(
            config=ONE_PROCESS,
            workloads=[
                {
                    "scenario": {"Planted.block_loop": {"block_s": 0.2}},
                    "runner": {"constant_for_duration": {"duration": 6, "concurrency": 10}},
                }
            ],
        ),
        checks=[
            checks.bound("blocked_loop", fault="generator"),
            checks.bound_says("planted.py:"),
            # one loop cannot be blocked for longer than the load lasts
            checks.number("loops.blocked_s", 6.0, within=0.1),
            checks.exits(4),
        ],
    )


def open_files() -> Case:
    """Ask for 200 connections with 100 open files."""
    return Case(
        name="open-files",
        planted="ulimit -n 100; 200 users of 0.5 s",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.5},
            config=ONE_PROCESS,
            within=["/bin/sh", "-c", 'ulimit -n 100; exec "$@"', "limited"],
            workloads=[
                {"scenario": REQUEST, "runner": {"constant": {"times": 600, "concurrency": 200}}}
            ],
        ),
        checks=[checks.bound("open_files", fault="generator"), checks.exits(4)],
    )


def _compute_for_ever() -> None:
    while True:
        pass


def _crowd(ground: Ground) -> None:
    """Keep all cores busy until the run has ended."""
    count = 2 * multiprocessing.cpu_count()
    context = multiprocessing.get_context("spawn")
    crowd = [context.Process(target=_compute_for_ever, daemon=True) for _ in range(count)]
    try:
        for one in crowd:
            one.start()
        ground.started.process.wait()
    finally:
        for one in crowd:
            one.kill()


def other_programs() -> Case:
    """Let other programs use all cores: if the load is late for it, that is the reason."""
    return Case(
        name="other-programs",
        planted="busy processes, two for each core; open 100/s of 20 ms",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.02},
            config=ONE_PROCESS,
            workloads=[{"scenario": REQUEST, "runner": {"rps": {"times": 1500, "rps": 100}}}],
            during=_crowd,
        ),
        checks=[checks.no_bound(besides=["other_programs", "generator_cpu", "late"])],
    )
