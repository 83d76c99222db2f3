"""The plain Celery application and its workers."""

from __future__ import annotations

import json
import time

import redis

from bench.stage import MARGIN_S, PEERS, WORKERS, BenchError, Stage
from servers import redis_server

#: The ways to run its workers that are tried: by processes, which is Celery's default, by threads.
POOLS = (("prefork", WORKERS), ("threads", 16))


def run_celery(stage: Stage, pool: tuple[str, int], seconds: float) -> float:
    """Iterations a second of workers of a pool. Raises BenchError where one is missing."""
    kind, concurrency = pool
    folder = stage.subfolder("celery")
    with redis_server() as server:
        env = {"BENCH_BROKER": server.url, "BENCH_FOLDER": str(folder)}
        command = [
            *(stage.peers, "-m", "celery", "--app", "celery_plain", "worker"),
            *("--pool", kind, "--concurrency", str(concurrency), "--loglevel", "WARNING"),
        ]
        with stage.child(command, cwd=PEERS, env=env) as worker:
            _await_consumer(server.client(), within_s=MARGIN_S)
            published = stage.peer("celery_publish.py", seconds, seconds * 3 + MARGIN_S, env=env)
            worker.end(within_s=MARGIN_S)
    parts = [json.loads(path.read_text()) for path in folder.glob("worker-*.json")]
    ran = sum(part["count"] for part in parts)
    if ran != published["published"]:
        raise BenchError(f"Celery ran {ran} of {published['published']} messages")
    span_s = max(part["last"] for part in parts) - min(part["first"] for part in parts)
    return float(ran / span_s)


def _await_consumer(client: redis.Redis, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    # a worker that consumes waits in a BRPOP
    while not any(one["cmd"] == "brpop" for one in client.client_list()):
        if time.monotonic() > deadline:
            raise BenchError("Celery's worker does not come up")
        time.sleep(0.05)
    client.close()
