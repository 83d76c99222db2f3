"""Cases of when requests are sent: the server's own log is compared with the plan."""

from __future__ import annotations

import json

from helpers.runs import Site
from truth import checks
from truth.case import Case
from truth.latencies import REQUEST
from truth.limits import TWO_PROCESSES
from truth.planting import HOME, Planting

#: Requests of the recorded log per second.
_RECORDED = 60


def rate_of_users() -> Case:
    """Limit the starts of many users of two processes: they are at even distances."""
    return Case(
        name="rate-of-users",
        planted="10 users of 10 ms on two worker processes, max_rate 2.5/s, for 8 s",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.01},
            config=TWO_PROCESSES,
            workloads=[
                {
                    "scenario": REQUEST,
                    "runner": {"constant_for_duration": {"duration": 8, "concurrency": 10}},
                    "users": {"max_rate": 2.5},
                }
            ],
        ),
        checks=[checks.gaps(0.4, within_s=0.1, least=19), checks.exits(0)],
    )


def _path_at(at_s: float) -> str:
    """Return the path of a half second."""
    return f"/{'abc'[int(2 * at_s) % 3]}"


def _record(here: Site, url: str) -> None:
    """Write a log of 9 s, and make a task of it."""
    lines = [
        {
            "msec": 1_700_000_000 + number / _RECORDED,
            "request_method": "GET",
            "request_uri": _path_at(number / _RECORDED),
            "status": 200,
            "request_time": 0.0,
        }
        for number in range(9 * _RECORDED)
    ]
    log = here.write("access.json", "".join(f"{json.dumps(line)}\n" for line in lines))
    made = here.call("init", "replay.yaml", "--from-access-log", str(log), "--base", url)
    assert made.code == 0, made.err


def replay() -> Case:
    """Replay a log on two worker processes: each request is sent at its own time."""
    return Case(
        name="replay",
        planted=f"a log of {_RECORDED}/s for 9 s, another path each half second; two processes",
        planting=Planting(
            server="fixed",
            values={"wait_s": 0.01},
            config=TWO_PROCESSES,
            before=_record,
            arguments=[f"{HOME}/replay.yaml", "--workers", "2"],
        ),
        checks=[
            checks.paths(_path_at, 9 * _RECORDED),
            checks.number("accounting.ok", 9 * _RECORDED),
            checks.exits(0),
        ],
    )
