"""A web server process whose latency is known exactly: the referee of what osbench reports.

As a script it is the server; its arguments are the name of a rule and the values of the
rule. A rule decides how long each request waits for its answer from nothing but arrival times: the
right percentiles of a load can be worked out on paper. Some paths are answered otherwise:

    /seen            at once, with what came
    /from-now/0.05   at once; all requests wait 0.05 s more from now on
    /fail            as the rule says, with 503
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"
FAILURE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nbusy\n"

#: Seconds until the answer to a request; arguments: its instant, seconds after the first request,
#: and its number from 0.
Rule = Callable[[float, int], float]


def fixed(wait_s: float) -> Rule:
    """Answer every request after the same time."""
    return lambda at_s, number: wait_s


def md1(mu: float) -> Rule:
    """Serve one request after another, `mu` a second: a queue without bound (Kendall's M/D/1)."""
    free_at_s = 0.0

    def wait(at_s: float, number: int) -> float:
        nonlocal free_at_s
        free_at_s = max(at_s, free_at_s) + 1 / mu
        return free_at_s - at_s

    return wait


def stall(at: float, len_s: float) -> Rule:
    """Answer at once, but nothing for `len_s` seconds from second `at` on."""
    return lambda at_s, number: at + len_s - at_s if at <= at_s < at + len_s else 0.0


def trend(first_s: float, last_s: float, over_s: float) -> Rule:
    """Become slower evenly, from `first_s` to `last_s` within `over_s` seconds."""
    return lambda at_s, number: first_s + (last_s - first_s) * min(at_s / over_s, 1.0)


def outlier(wait_s: float, number_of: float, len_s: float) -> Rule:
    """Answer one request, by its number, after `len_s` seconds, all others after `wait_s`."""
    return lambda at_s, number: len_s if number == number_of else wait_s


def slow_start(wait_s: float, count: float, first_s: float) -> Rule:
    """Answer the first `count` requests after `first_s` seconds, all others after `wait_s`."""
    return lambda at_s, number: first_s if number < count else wait_s


def hang_up(wait_s: float) -> Rule:
    """Answer the first request of a connection; read the second one and close without an answer."""
    return fixed(wait_s)


RULES: dict[str, Callable[..., Rule]] = {
    rule.__name__: rule for rule in (fixed, md1, stall, trend, outlier, slow_start, hang_up)
}


@dataclass(frozen=True, kw_only=True)
class RefereeLog:
    """All that a referee has seen; instants are seconds after the first request."""

    #: How often each iteration has come, by method: {"POST": {"1": 1}}.
    iterations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Instant and path of each request.
    requests: Sequence[tuple[float, str]] = ()
    #: Instants at which `/from-now/` was asked for.
    changes: Sequence[float] = ()


class Referee:
    """The server as a separate process."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def seen(self) -> RefereeLog:
        """Ask for all that has come."""
        with urllib.request.urlopen(f"{self.url}/seen", timeout=60) as answer:
            return RefereeLog(**json.load(answer))


@contextlib.contextmanager
def referee(rule: str, **values: float) -> Iterator[Referee]:
    """A referee with a rule of RULES, on a free loopback port that it has chosen itself."""
    # not at the top: the script runs without the tests' other modules
    from servers.child import Child, folder

    with folder() as here:
        said = here / "port"
        arguments = [f"{name}={value}" for name, value in values.items()]
        child = Child(
            [sys.executable, __file__, "--port-file", str(said), rule, *arguments],
            folder=here,
            log=here / "referee.log",
        )
        try:
            assert child.wait_until(said.exists), child.tail()
            yield Referee(int(said.read_text("utf-8")))
        finally:
            child.end()


class _Court:
    """State of the server: its rule, and what has come."""

    def __init__(self, rule: Rule, *, hangs_up: bool) -> None:
        self.rule = rule
        self.hangs_up = hangs_up
        self._iterations: dict[str, Counter[str]] = {}
        self._requests: list[tuple[float, str]] = []
        self._changes: list[float] = []
        self._first_at = 0.0
        self._more_s = 0.0

    @property
    def seen(self) -> dict[str, Any]:
        """Fields of `RefereeLog`."""
        return {
            "iterations": self._iterations,
            "requests": self._requests,
            "changes": self._changes,
        }

    def change(self, more_s: float) -> None:
        """Let all requests from now on wait for longer than the rule says."""
        self._more_s = more_s
        self._changes.append(self._now_s())

    def wait_s(self, method: str, path: str, iteration: str) -> float:
        """Count a request; seconds until its answer."""
        at_s = self._now_s()
        self._iterations.setdefault(method, Counter())[iteration] += 1
        self._requests.append((at_s, path))
        return self.rule(at_s, len(self._requests) - 1) + self._more_s

    def _now_s(self) -> float:
        now = time.monotonic()
        self._first_at = self._first_at or now
        return now - self._first_at


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with bodies of known length, requests one after another."""

    def __init__(self, court: _Court) -> None:
        self._court = court
        self._data = b""
        self._requests = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            lines = self._data[:end].decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in lines[1:])
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            whole = end + 4 + int(headers.get("content-length", "0"))
            if len(self._data) < whole:
                return
            self._data = self._data[whole:]
            method, path, _ = lines[0].split(" ")
            self._request(method, path, headers.get("x-osbench-iteration", "-"))

    def _request(self, method: str, path: str, iteration: str) -> None:
        if path == "/seen":
            body = json.dumps(self._court.seen).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            self._transport.write(body)
            return
        if path.startswith("/from-now/"):
            self._court.change(float(path.rpartition("/")[2]))
            self._transport.write(ANSWER)
            return
        self._requests += 1
        wait_s = self._court.wait_s(method, path, iteration)
        answer = FAILURE if path == "/fail" else ANSWER
        if self._court.hangs_up and self._requests > 1:
            self._transport.close()
        elif wait_s > 0:
            asyncio.get_running_loop().call_later(wait_s, self._answer, answer)
        else:
            self._answer(answer)

    def _answer(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def serve(court: _Court, port_file: Path) -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(court), "127.0.0.1", 0, backlog=1024)
    part = port_file.with_suffix(".part")
    part.write_text(f"{server.sockets[0].getsockname()[1]}", "utf-8")
    part.rename(port_file)
    await server.serve_forever()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("rule", choices=RULES)
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE")
    args = parser.parse_args()
    values = {name: float(value) for name, _, value in (one.partition("=") for one in args.values)}
    court = _Court(RULES[args.rule](**values), hangs_up=args.rule == "hang_up")
    uvloop.run(serve(court, args.port_file))


if __name__ == "__main__":
    main()
