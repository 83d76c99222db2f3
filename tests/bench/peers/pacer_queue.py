"""Arrivals at a rate, the usual way: one thread sleeps to each, a queue hands it to a pool."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import threading
import time


def pace(dues, sleep_s, threads, results):
    """One process: start `dues` (monotonic nanoseconds) and send back how late each started."""
    waiting = queue.SimpleQueue()
    lags = []

    def serve():
        while (due := waiting.get()) is not None:
            lags.append(time.monotonic_ns() - due)
            time.sleep(sleep_s)

    pool = [threading.Thread(target=serve) for _ in range(threads)]
    for thread in pool:
        thread.start()
    for due in dues:
        left = due - time.monotonic_ns()
        if left > 0:
            time.sleep(left / 1e9)
        waiting.put(due)
    for _ in pool:
        waiting.put(None)
    for thread in pool:
        thread.join()
    results.put(lags)


def main():
    """Print percentiles of the start lag, milliseconds."""
    parser = argparse.ArgumentParser()
    for name, kind in (("rate", float), ("sleep-s", float), ("count", int)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    for name in ("processes", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args()
    begin = time.monotonic_ns() + 1_000_000_000
    dues = [begin + int(number / given.rate * 1e9) for number in range(given.count)]
    # as all Pythons before 3.14 start them: others would be late for the common start
    forked = multiprocessing.get_context("fork")
    results = forked.Queue()
    processes = [
        forked.Process(
            target=pace,
            args=(dues[at :: given.processes], given.sleep_s, given.threads, results),
        )
        for at in range(given.processes)
    ]
    for process in processes:
        process.start()
    lags = sorted(lag for _ in processes for lag in results.get())
    for process in processes:
        process.join()
    assert len(lags) == given.count
    print(
        json.dumps(
            {
                name: lags[min(len(lags) - 1, len(lags) * permille // 1000)] / 1e6
                for name, permille in (("p50", 500), ("p99", 990), ("p999", 999))
            }
        )
    )


if __name__ == "__main__":
    main()
