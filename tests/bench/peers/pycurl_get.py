"""GET after GET by pycurl with nothing around it: a handle a thread."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import threading
import time

import pycurl


def get(url, until, counts, authority, connection):
    """Count the requests of one handle until an instant."""
    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, url)
    if authority:
        handle.setopt(pycurl.CAINFO, authority)
    if connection:
        handle.setopt(pycurl.HTTPHEADER, [f"Connection: {connection}"])
    handle.setopt(pycurl.NOSIGNAL, 1)
    # the cheapest way to take a body and throw it away
    handle.setopt(pycurl.WRITEFUNCTION, len)
    count = 0
    while time.monotonic() < until:
        handle.perform()
        assert handle.getinfo(pycurl.RESPONSE_CODE) == 200
        count += 1
    counts.append(count)


def process(url, begin, seconds, threads, results, *over):
    """One process: `threads` handles from a common start on."""
    counts = []
    pool = [
        threading.Thread(target=get, args=(url, begin + seconds, counts, *over))
        for _ in range(threads)
    ]
    time.sleep(max(0.0, begin - time.monotonic()))
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    results.put(sum(counts) if len(counts) == threads else None)


def main():
    """Print the requests a second of all processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    for name in ("processes", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("authority", "connection"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args()
    # as all Pythons before 3.14 start them: others would be late for the common start
    forked = multiprocessing.get_context("fork")
    results = forked.Queue()
    begin = time.monotonic() + 0.5
    processes = [
        forked.Process(
            target=process,
            args=(
                *(given.url, begin, given.seconds, given.threads, results),
                *(given.authority, given.connection),
            ),
        )
        for _ in range(given.processes)
    ]
    for one in processes:
        one.start()
    total = sum(results.get() for _ in processes)
    print(json.dumps({"count": total, "rate": total / (time.monotonic() - begin)}))


if __name__ == "__main__":
    main()
