"""Cases of percentiles and of the course of a load, against a referee whose latency is known."""

from __future__ import annotations

from typing import Any

from truth import checks
from truth.case import Case
from truth.planting import URL, Planting

REQUEST = {"HttpRequests.check_request": {"url": f"{URL}/x", "method": "GET", "status_code": 200}}


def _open(times: int, rps: float, **more: Any) -> dict[str, Any]:
    return {"scenario": REQUEST, "runner": {"rps": {"times": times, "rps": rps}}, **more}


def overload() -> Case:
    """Offer twice what a queue can serve: arrival i waits i/mu - i/rate = i/100 seconds."""
    return Case(
        name="overload",
        planted="queue of 50/s; open 100/s for 25 s",
        planting=Planting(
            server="md1",
            values={"mu": 50},
            workloads=[_open(2500, 100, sla={"percentile": {"p": 95, "max_s": 1}})],
        ),
        checks=[
            *checks.percentiles("response", {"p50": 12.5, "p95": 23.75, "p99": 24.75}),
            checks.share("dropped", 0, 0),
            checks.bound("service", fault="service"),
            checks.no_bound("generator"),
            checks.exits(1),
        ],
    )


def stall_open() -> Case:
    """Hold all answers for 5 s: a sixth of 6,000 arrivals wait evenly from 5 s down to 0."""
    return Case(
        name="stall-open",
        planted="no answer for 5 s at 10 s; open 200/s for 30 s",
        planting=Planting(
            server="stall", values={"at": 10, "len_s": 5}, workloads=[_open(6000, 200)]
        ),
        checks=[
            *checks.percentiles("response", {"p90": 2.0, "p95": 3.5, "p99": 4.7}),
            checks.share("dropped", 0, 0),
        ],
    )


def stall_closed() -> Case:
    """Hold all answers for 5 s: a closed load asks for none meanwhile, and must say so."""
    return Case(
        name="stall-closed",
        planted="no answer for 5 s at 10 s; 10 users for 30 s",
        planting=Planting(
            server="stall",
            values={"at": 10, "len_s": 5},
            workloads=[
                {
                    "scenario": REQUEST,
                    "runner": {"constant_for_duration": {"duration": 30, "concurrency": 10}},
                    "think": {"min": 0.05},
                }
            ],
        ),
        checks=[checks.note_with_number("no iteration began for", 5.0, within=0.1)],
    )


def trend() -> Case:
    """Become slower through the load: percentiles of all of it mix both."""
    runner = {"rps": {"times": 3000, "rps": 50, "arrivals": "poisson"}}
    return Case(
        name="trend",
        planted="10 to 58 ms within 60 s; open 50/s",
        planting=Planting(
            server="trend",
            values={"first_s": 0.010, "last_s": 0.058, "over_s": 60},
            workloads=[{"scenario": REQUEST, "runner": runner}],
        ),
        checks=[checks.note("rose from"), checks.percentiles("response", {"p50": 0.034}, 0.1)[0]],
    )


def outlier() -> Case:
    """Answer one of 3,000 requests after 10 s: no percentile shows it."""
    return Case(
        name="outlier",
        planted="one answer of 10 s among 3,000 of 10 ms",
        planting=Planting(
            server="outlier",
            values={"wait_s": 0.010, "number_of": 500, "len_s": 10},
            workloads=[_open(3000, 100)],
        ),
        checks=[
            checks.note("next slowest"),
            checks.number("latency.service.ok.max", 10.0, within=0.02),
        ],
    )


def slow_start() -> Case:
    """Answer the first requests after 3 s: the generator's estimate of its speed must not lag."""
    return Case(
        name="slow-start",
        planted="first 20 answers 3 s, then 10 ms; 20 users, 8,000 iterations",
        planting=Planting(
            server="slow_start",
            values={"wait_s": 0.010, "count": 20, "first_s": 3},
            workloads=[
                {"scenario": REQUEST, "runner": {"constant": {"times": 8000, "concurrency": 20}}}
            ],
        ),
        checks=[checks.no_bound("generator"), checks.exits(0)],
    )
