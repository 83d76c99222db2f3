"""Publishes one message an iteration for some seconds, then waits until all are taken."""

from __future__ import annotations

import json
import os
import sys
import time

import redis
from celery_plain import iterate


def main(seconds: float, within_s: float) -> None:
    """Print how many were published. The queue and what is unacknowledged must be empty then."""
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + seconds:
        for _ in range(100):
            iterate.delay(count)
            count += 1
    client = redis.Redis.from_url(os.environ["BENCH_BROKER"])
    while client.llen("celery") or client.zcard("unacked_index"):
        if time.monotonic() > begin + seconds + within_s:
            sys.exit("the workers do not empty the queue")
        time.sleep(0.05)
    print(json.dumps({"published": count}))


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
