"""The sample shop with a route whose calls are planned, some of them faster.

    GET /report  calls a, b and c, in the order of --shape; --factor a=0.5 halves call a

The n-th request of a process sleeps as long as the n-th of any other, so that runs can be compared.
As a script it is the service, as samples/webservice.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from wsgiref.simple_server import make_server

from osprofiler import profiler

SAMPLE = Path(__file__).parents[2] / "samples" / "webservice.py"
KEY = "key-of-the-plan"
#: Spread of a call: that of the logarithm of its duration.
SPREAD = 0.4

Call = Callable[[str, float], None]


def sequential(call: Call, _: threading.Lock) -> None:
    """One after another."""
    call("a", 100)
    call("b", 50)
    call("c", 25)


def parallel(call: Call, _: threading.Lock) -> None:
    """All at once."""
    together(lambda: call("a", 100), lambda: call("b", 90), lambda: call("c", 50))


def joined(call: Call, _: threading.Lock) -> None:
    """Two at once, and one after both."""
    together(lambda: call("a", 75), lambda: call("b", 75))
    call("c", 50)


def chained(call: Call, _: threading.Lock) -> None:
    """Two calls in a branch beside a third."""

    def branch() -> None:
        with profiler.Trace("branch"):
            call("a", 60)
            call("b", 60)

    together(branch, lambda: call("c", 125))


def locked(call: Call, lock: threading.Lock) -> None:
    """A wait for a lock that other requests hold during call a."""
    with profiler.Trace("lock"):
        lock.acquire()
    try:
        call("a", 40)
    finally:
        lock.release()
    call("b", 75)
    call("c", 50)


SHAPES: Mapping[str, Callable[[Call, threading.Lock], None]] = {
    one.__name__: one for one in (sequential, parallel, joined, chained, locked)
}


def together(*steps: Callable[[], None]) -> None:
    """Run steps in a thread each, within the span that is open here, and wait for all."""
    here = profiler.get()

    def run(step: Callable[[], None]) -> None:
        if here is not None:
            profiler.init(KEY, base_id=here.get_base_id(), parent_id=here.get_id())
        step()

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Plan:
    """The calls of each request."""

    def __init__(self, shape: str, factors: Mapping[str, float]) -> None:
        self._shape = SHAPES[shape]
        self._factors = factors
        self._number = itertools.count()
        self._lock = threading.Lock()

    def answer(self, environ: dict[str, Any]) -> tuple[str, Any]:
        """Serve a request."""
        number = next(self._number)

        def call(name: str, usual_ms: float) -> None:
            drawn = random.Random(f"{number} {name}").lognormvariate(0, SPREAD)
            with profiler.Trace(name):
                time.sleep(drawn * usual_ms * self._factors.get(name, 1.0) / 1000)

        self._shape(call, self._lock)
        return "200 OK", {"number": number}


@contextlib.contextmanager
def planned_shop(home: Path, store: str, shape: str, factors: Mapping[str, float]) -> Iterator[str]:
    """The service as a process; gives its address."""
    from servers.child import Child

    environment = {**os.environ, "OSPROFILER_HMAC_KEY": KEY, "OSPROFILER_CONN_STR": store}
    log = home / f"shop-{len(list(home.glob('shop-*.log')))}.log"
    command = [sys.executable, __file__, "--shape", shape]
    for name, factor in factors.items():
        command += ["--factor", f"{name}={factor}"]
    child = Child(command, folder=home, log=log, env=environment)
    try:
        assert child.wait_until(lambda: "\n" in log.read_text()), child.tail()
        yield log.read_text().splitlines()[0]
    finally:
        child.end()


def main() -> None:
    """Serve until killed; the first line is the address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--factor", action="append", default=[])
    args = parser.parse_args()
    spec = importlib.util.spec_from_file_location("webservice", SAMPLE)
    assert spec is not None
    assert spec.loader is not None
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    factors = {name: float(value) for name, _, value in (one.partition("=") for one in args.factor)}
    plan = Plan(args.shape, factors)

    class PlannedShop(sample.Shop):  # type: ignore[misc,name-defined]  # loaded by its path
        """The shop, whose reports are planned."""

        def report(self, environ: dict[str, Any]) -> tuple[str, Any]:
            return plan.answer(environ)

    application = sample.traced(PlannedShop(Path("shop.sqlite3")))
    with make_server("127.0.0.1", 0, application, sample.Server, sample.QuietHandler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
