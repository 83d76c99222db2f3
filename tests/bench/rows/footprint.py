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

#: Numbers of users, with the least ratio to Locust.
RATIOS = {6_000: 1.0, 20_000: 1.4}
#: What the server takes for an answer: all users wait for one, most of the time.
ANSWER_MS = 4_000
#: Users that begin in a second.
RATE = 1_000
#: The best figure that k6's makers have published (docs/bench.md).
BOUND = 2_770.0
_GB = 1e9


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Memory of all processes of each tool, coordinator, Redis and master included."""
    return [row for users in RATIOS for row in _measured(stage, say, users)]


def _measured(stage: Stage, say: Callable[[str], None], users: int) -> list[Comparison]:
    with iteration_log(stage.subfolder(f"server-{users}")) as server:
        url, port = server.url("load", ANSWER_MS), server.port
        arms = {
            "osbench": lambda: {"osbench": _osbench(stage, users, url)},
            "Locust": lambda: {"locust": _locust(stage, users, port)},
        }
        values = interleave(arms, stage.rounds, say)
    title = f"{users:,} users of HttpFlow with a connection each, {WORKERS} workers: users per GB"
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
            target=Target(bound=RATIOS[users]),
        ),
    ]


def _osbench(stage: Stage, users: int, url: str) -> float:
    stage.configure()
    runner = {
        "duration": users / RATE + 2 * stage.block_s,
        "concurrency": users,
        "ramp_up": users / RATE,
    }
    flow = {"steps": [{"name": "wait", "path": url}]}
    with memory_sample() as sample:
        stage.run(
            {"scenario": {"HttpFlow.run": flow}, "runner": {"constant_for_duration": runner}},
            *("--workers", str(WORKERS)),
            plugins=False,
        )
    return users / (sample.most / _GB)


def _locust(stage: Stage, users: int, port: int) -> float:
    env = {
        "BENCH_URL": f"http://127.0.0.1:{port}",
        "BENCH_PATH": f"/load/{ANSWER_MS}",
    }
    with memory_sample() as sample:
        finish_locust(
            stage,
            "locust_http.py",
            users,
            users / RATE + 2 * stage.block_s,
            env,
            spawn_rate=RATE,
        )
    return users / (sample.most / _GB)
