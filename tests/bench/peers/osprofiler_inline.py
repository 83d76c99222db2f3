"""OSProfiler as it comes: a trace an iteration, its Redis driver in the measured path."""

from __future__ import annotations

import argparse
import json
import os
import threading
import time

import redis
from osprofiler import notifier, opts, profiler
from osprofiler.drivers import base


def serve(numbers):
    """Trace iterations until there are no more: a root span and one in it."""
    for number in numbers:
        profiler.clean()
        profiler.init("bench")
        profiler.start("iteration", {"run": "bench", "iteration": number})
        profiler.start("nothing")
        profiler.stop()
        profiler.stop()
        profiler.clean()


def main():
    """Print the CPU of this process per iteration, microseconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    given = parser.parse_args()
    store = os.environ["BENCH_STORE"]
    redis.Redis.from_url(store).flushall()
    opts.set_defaults(opts.cfg.CONF)
    notifier.set(base.get_driver(store, project="bench", service="bench").notify)
    numbers = iter(range(given.iterations))
    threads = [threading.Thread(target=serve, args=(numbers,)) for _ in range(given.threads)]
    before = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"cpu_us": (time.process_time() - before) / given.iterations * 1e6}))


if __name__ == "__main__":
    main()
