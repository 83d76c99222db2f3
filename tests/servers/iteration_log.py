"""A web server process that writes down which iterations reached it, before it answers.

As a script it is the server: it prints its port, then appends a line to the log for each request
(`B`, on arrival) and for each answer (`A`, once its bytes are with the system):

    B INSTANT RUN TAG ITERATION

The instant is of CLOCK_MONOTONIC, in seconds. A request names its tag and how long its answer takes
in its path, /TAG/MILLISECONDS; run and iteration stand in the headers that osbench sends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A request that came, or an answer that went."""

    answered: bool
    #: CLOCK_MONOTONIC, seconds.
    at: float
    run: str
    tag: str
    iteration: int


class IterationLog:
    """The server as a process of its own: faults of a test's process do not reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "iterations.log"
        self.port = 0

    def url(self, tag: str = "load", answer_ms: int = 20) -> str:
        """Where to send requests whose answers take so long."""
        return f"http://127.0.0.1:{self.port}/{tag}/{answer_ms}"

    def lines(self) -> list[Line]:
        """All requests and answers so far: a reader may see the start of a line being written."""
        found = []
        for line in self.path.read_text("utf-8").split("\n")[:-1]:
            what, at, run, tag, iteration = line.split(" ")
            found.append(
                Line(
                    answered=what == "A",
                    at=float(at),
                    run=run,
                    tag=tag,
                    iteration=int(iteration),
                )
            )
        return found

    def seen(self, run: str | None = None) -> Counter[int]:
        """How often each iteration of a run (or of all runs) reached the server."""
        return Counter(
            line.iteration
            for line in self.lines()
            if not line.answered and (run is None or line.run == run)
        )

    @property
    def size(self) -> int:
        """Bytes of the log: grows with each request."""
        return self.path.stat().st_size


@contextlib.contextmanager
def iteration_log(folder: Path) -> Iterator[IterationLog]:
    """A server on a free loopback port, with its log in `folder`."""
    # not at the top: the script runs without the tests' other modules
    from servers.child import Child

    log = IterationLog(folder)
    log.path.touch()
    said = folder / "iterations.port"
    child = Child(
        [sys.executable, __file__, "--log", str(log.path), "--port-file", str(said)],
        folder=folder,
        log=folder / "iterations.err",
    )
    try:
        assert child.wait_until(said.exists), child.tail()
        log.port = int(said.read_text("utf-8"))
        yield log
    finally:
        child.end()


class Server:
    """Appends to the log by single writes, which a killed process leaves whole."""

    def __init__(self, log: int) -> None:
        self._log = log

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until the client closes it."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await self._request(reader, writer)
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:-2])
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        await reader.readexactly(int(headers.get("content-length", "0")))
        _, tag, answer_ms = head[0].split(" ")[1].split("/")
        run = headers.get("x-osbench-run", "-") or "-"
        named = f"{run} {tag} {headers.get('x-osbench-iteration', '-1')}"
        self._write("B", named)
        await asyncio.sleep(int(answer_ms) / 1e3)
        writer.write(ANSWER)
        await writer.drain()
        self._write("A", named)

    def _write(self, what: str, named: str) -> None:
        os.write(self._log, f"{what} {time.monotonic():.6f} {named}\n".encode())


async def serve(log: Path, port_file: Path) -> None:
    """Serve until killed."""
    found = Server(os.open(log, os.O_WRONLY | os.O_APPEND))
    server = await asyncio.start_server(found.connection, "127.0.0.1", 0, backlog=1024)
    part = port_file.with_suffix(".part")
    part.write_text(f"{server.sockets[0].getsockname()[1]}", "utf-8")
    part.rename(port_file)
    await server.serve_forever()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    args = parser.parse_args()
    asyncio.run(serve(args.log, args.port_file))


if __name__ == "__main__":
    main()
