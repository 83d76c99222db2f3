"""Virtual users per GB of memory, each with a connection of its own, against Locust."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.locust import finish_locust
from bench.memory_sample import memory_sample
from bench.rounds import interleave
from bench.stage import WORKERS, Stage
from servers.iteration_log import iteration_log

NEEDS = ("redis",)

USERS = 6_000
#: What the server takes for an answer: all users wait for one, most of the time.
ANSWER_MS = 4_000
RAMP_UP_S = 6.0
#: The best figure that k6's makers have published (docs/bench.md).
BOUND = 2_770.0
_GB = 1e9


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Memory of all processes of each tool, coordinator, Redis and master included."""
    with iteration_log(stage.subfolder("server")) as server:
        arms = {
            "osbench": lambda: {"osbench": _osbench(stage, server.url("load", ANSWER_MS))},
            "Locust": lambda: {"locust": _locust(stage, server.port)},
        }
        values = interleave(arms, stage.rounds, say)
    title = f"{USERS:,} users of HttpFlow with a connection each, {WORKERS} workers: users per GB"
    return [
        Comparison(
            row="footprint",
            title=title,
            unit="users",
            osbench=values["osbench"],
            target=Target(bound=BOUND),
        ),
        Comparison(
            row="footprint",
            title=title,
            unit="users",
            osbench=values["osbench"],
            peer_name="Locust FastHttpUser",
            peer=values["locust"],
        ),
    ]


def _osbench(stage: Stage, url: str) -> float:
    stage.configure()
    runner = {
        "duration": RAMP_UP_S + 2 * stage.block_s,
        "concurrency": USERS,
        "ramp_up": RAMP_UP_S,
    }
    flow = {"steps": [{"name": "wait", "path": url}]}
    with memory_sample() as sample:
        stage.run(
            {"scenario": {"HttpFlow.run": flow}, "runner": {"constant_for_duration": runner}},
            *("--workers", str(WORKERS)),
        )
    return USERS / (sample.most / _GB)


def _locust(stage: Stage, port: int) -> float:
    env = {
        "BENCH_URL": f"http://127.0.0.1:{port}",
        "BENCH_PATH": f"/load/{ANSWER_MS}",
    }
    with memory_sample() as sample:
        finish_locust(
            stage,
            "locust_http.py",
            USERS,
            RAMP_UP_S + 2 * stage.block_s,
            env,
            spawn_rate=round(USERS / RAMP_UP_S),
        )
    return USERS / (sample.most / _GB)
