"""Cases of verdicts: the generator is late, the service is slow or fails, and who is judged."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from typing import Any

from truth import checks
from truth.case import Case
from truth.latencies import REQUEST
from truth.limits import ONE_PROCESS, TWO_PROCESSES
from truth.planting import URL, Ground, Planting

DISPUTED = "may be the generator's own doing"


def _stop_again_and_again(ground: Ground) -> None:
    """Stop all worker processes for 0.7 s every 12 s until the run has ended."""
    ground.await_load()
    while ground.started.process.poll() is None:
        time.sleep(11.3)
        workers = ground.workers()
        try:
            for worker in workers:
                worker.send_signal(signal.SIGSTOP)
            time.sleep(0.7)
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGCONT)


def search_beside_stops() -> Case:
    """Search the capacity of a queue while the generator stops: no figure of the generator's."""
    search = {"low": 60, "high": 320, "precision": 0.15, "hold": 3, "settle": 1, "max_trials": 8}
    return Case(
        name="search-beside-stops",
        planted="queue of 130/s; SIGSTOP of all workers for 0.7 s every 12 s",
        planting=Planting(
            server="md1",
            values={"mu": 130},
            config=TWO_PROCESSES,
            workloads=[
                {
                    "scenario": REQUEST,
                    "runner": {"search": search},
                    "sla": {
                        "failure_rate": {"max": 0},
                        "percentile": {"p": 90, "max_s": 0.05, "of": "response"},
                    },
                }
            ],
            during=_stop_again_and_again,
        ),
        # at 132/s the queue is 0.05 s long at the end of a trial
        checks=[checks.capacity(130, 132)],
    )


def users_at_once() -> Case:
    """Search users of a queue: each waits for all others, so N users wait N / 50 s."""
    search = {"users": {"low": 1, "high": 40}, "hold": 4, "settle": 2}
    good = {"min": "95 %", "of": [{"p": "response", "max": 0.21}]}
    return Case(
        name="users-at-once",
        planted="queue of 50/s, users without think time: 10 of them wait 0.20 s, 11 wait 0.22 s",
        planting=Planting(
            server="md1",
            values={"mu": 50},
            config=TWO_PROCESSES,
            workloads=[{"scenario": REQUEST, "runner": {"search": search}, "sla": {"good": good}}],
        ),
        checks=[checks.capacity(10, 10, " users")],
    )


def _limit(
    wait_s: float, limit: Mapping[str, Any], blocking: float, block_s: float = 0.04
) -> Mapping[str, Any]:
    """Open load of a service whose answers take `wait_s`; a share `blocking` blocks the loop."""
    return {
        "server": "fixed",
        "values": {"wait_s": wait_s},
        "config": ONE_PROCESS,
        "workloads": [
            {
                "scenario": {"Planted.visit": {"block_s": block_s, "blocking": blocking}},
                "http": {"base": URL},
                "runner": {"rps": {"times": 840, "rps": 70}},
                "sla": {"percentile": limit},
            }
        ],
    }


def more_requests() -> Case:
    """Send seven requests instead of one in a few iterations: these are the slow ones."""
    return Case(
        name="more-requests",
        planted="7 requests instead of one in 5 % of iterations; service of 12 ms",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.012},
            workloads=[
                {
                    "scenario": {"Planted.ask_again": {"share": 0.05, "requests": 7}},
                    "http": {"base": URL},
                    "runner": {"rps": {"times": 1600, "rps": 80}},
                }
            ],
        ),
        checks=[checks.explanation("item", "7 calls instead of 1"), checks.exits(0)],
    )


def blocks_break_limit() -> Case:
    """Break a limit by nothing but blocked loops: the service is not at fault."""
    return Case(
        name="blocks-break-limit",
        planted="service of 12 ms, p93 at most 30 ms; 8 % of iterations block the loop for 40 ms",
        planting=Planting(**_limit(0.012, {"p": 93, "max_s": 0.03}, 0.08)),
        checks=[checks.verdict("percentile", DISPUTED), checks.exits(4)],
    )


def blocks_break_response() -> Case:
    """Break a limit of response times by blocked loops: arrivals in them start late."""
    return Case(
        name="blocks-break-response",
        planted="12 ms, p85 of response at most 25 ms; 9 % of iterations block the loop for 45 ms",
        planting=Planting(
            **_limit(0.012, {"p": 85, "max_s": 0.025, "of": "response"}, 0.09, block_s=0.045)
        ),
        checks=[checks.verdict("percentile", DISPUTED), checks.exits(4)],
    )


def slow_breaks_limit() -> Case:
    """Break a limit by a slow service."""
    return Case(
        name="slow-breaks-limit",
        planted="service of 60 ms, p90 at most 45 ms",
        planting=Planting(**_limit(0.06, {"p": 90, "max_s": 0.045}, 0.0)),
        checks=[checks.verdict("percentile", without=DISPUTED), checks.exits(1)],
    )


def both_break_limit() -> Case:
    """Break a limit by a slow service beside blocked loops: the service is at fault."""
    return Case(
        name="both-break-limit",
        planted="service of 60 ms, p90 at most 45 ms; 8 % of iterations block the loop for 40 ms",
        planting=Planting(**_limit(0.06, {"p": 90, "max_s": 0.045}, 0.08)),
        checks=[checks.verdict("percentile", without=DISPUTED), checks.exits(1)],
    )


def failures_beside_blocks() -> Case:
    """Fail in the service while loops are late: it fails, and both causes are named."""
    scenario = {"Planted.visit": {"block_s": 0.15, "blocking": 0.1, "failing": 0.05}}
    return Case(
        name="failures-beside-blocks",
        planted="5 % of answers are 503; 10 % of iterations block the loop for 150 ms",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.012},
            config=ONE_PROCESS,
            workloads=[
                {
                    "scenario": scenario,
                    "http": {"base": URL},
                    "runner": {"rps": {"times": 300, "rps": 40}},
                    "sla": {"failure_rate": {"max": 1}},
                }
            ],
        ),
        checks=[
            checks.verdict("failure_rate", without=DISPUTED),
            checks.failed_as(15),
            checks.bound("blocked_loop", fault="generator"),
            checks.exits(1),
        ],
    )


def short_loads() -> Case:
    """Run so little that nothing can be said of the generator, and say nothing of it."""
    return Case(
        name="short-loads",
        planted="7 no-ops; 4 users for 2 s",
        planting=Planting(
            workloads=[
                {
                    "scenario": {"Dummy.dummy": {}},
                    "runner": {"constant": {"times": 7, "concurrency": 1}},
                },
                {
                    "scenario": {"Dummy.dummy": {"sleep": 0.03}},
                    "runner": {"constant_for_duration": {"duration": 2, "concurrency": 4}},
                },
            ]
        ),
        checks=[
            checks.no_bound("generator"),
            checks.of(1, checks.no_bound("generator")),
            checks.exits(0),
        ],
    )


def _ask(name: str, more_s: float, at_s: int) -> dict[str, Any]:
    return {
        "description": name,
        "action": {"ask": f"{URL}/from-now/{more_s}"},
        "trigger": {"event": {"unit": "time", "at": [at_s]}},
    }


def slow_drill() -> Case:
    """Become slower for some seconds without a failure: the drill sees it, and for how long."""
    runner = {"rps": {"times": 1440, "rps": 80, "arrivals": "poisson"}}
    return Case(
        name="slow-drill",
        planted="25 ms, and 95 ms from 7 s to 11 s; Poisson 80/s for 18 s; recovery_s at most 2",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.025},
            workloads=[
                {
                    "scenario": REQUEST,
                    "runner": runner,
                    "hooks": [_ask("slow", 0.07, 7), _ask("quick", 0.0, 11)],
                    "phases": {"fault": "slow", "after": "quick"},
                    "sla": {"drill": {"failed": {"max": 10}, "recovery_s": {"max": 2}}},
                }
            ],
        ),
        checks=[
            checks.recovery(within_s=0.5),
            checks.verdict("drill", "recover", without=DISPUTED),
            checks.exits(1),
        ],
    )
