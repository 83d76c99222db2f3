"""Two instances of webservice.py behind a proxy that takes turns, to practise failures with.

    python samples/two_shops.py --port 8080       serve; `--log FILE` has a line for each request
    python samples/two_shops.py stop 2            kill instance 2, as if its host had lost power
    python samples/two_shops.py start 2           start it again; ends when it serves

The proxy has no health checks: while an instance is down, every other request gets a 502.
A line of its log is the instance, the status, method and path, or the name and end of a command.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TextIO

WEBSERVICE = Path(__file__).resolve().parent / "webservice.py"
#: Longest time for a response of an instance, and for a command, seconds.
ANSWER_S, COMMAND_S = 30, 60
PORT = 8080
#: Path of commands, which is not passed on.
COMMANDS = "/-/"


class Instance:
    """A process of webservice.py, which may be stopped."""

    def __init__(self, name: str, database: Path) -> None:
        self.name = name
        self._database = database
        self._process: subprocess.Popen[str] | None = None
        self._host = ""
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start it if it is not there, and wait until it serves."""
        with self._lock:
            if self._process is not None:
                return
            command = [sys.executable, str(WEBSERVICE), "--database", str(self._database)]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert self._process.stdout is not None
            self._host = self._process.stdout.readline().strip().removeprefix("http://")

    def stop(self) -> None:
        """Kill it."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
                self._process = None

    def ask(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, str, bytes]:
        """Return status, type and body of its response. Raises OSError, HTTPException."""
        if self._process is None:
            raise ConnectionError("is not running")
        connection = http.client.HTTPConnection(self._host, timeout=ANSWER_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read()


class Proxy(ThreadingHTTPServer):
    """Passes requests on to instances in turn."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int, instances: list[Instance], log: TextIO) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.instances = {one.name: one for one in instances}
        self._turns = itertools.cycle(instances)
        self._log = log
        self._lock = threading.Lock()

    def next_instance(self) -> Instance:
        """The one whose turn it is."""
        with self._lock:
            return next(self._turns)

    def note(self, *words: object) -> None:
        """Write a line of the log."""
        with self._lock:
            print(*words, file=self._log, flush=True)


class Handler(BaseHTTPRequestHandler):
    """Requests of one connection."""

    server: Proxy
    protocol_version = "HTTP/1.1"
    #: Header and body are written apart: the body is not to wait for an acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Pass a request on."""
        self._serve()

    def do_POST(self) -> None:
        """Pass a request on, or follow a command."""
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(COMMANDS):
            self._command(*self.path.removeprefix(COMMANDS).partition("/")[::2])
            return
        instance = self.server.next_instance()
        kind = self.headers.get("Content-Type", "")
        try:
            status, kind, answer = instance.ask(self.command, self.path, body, kind)
        except (OSError, http.client.HTTPException) as error:
            status, kind, answer = 502, "text/plain", f"{type(error).__name__}: {error}".encode()
        # noted first: whoever has the response can rely on the line
        self.server.note(instance.name, status, self.command, self.path)
        self._answer(status, kind, answer)

    def _command(self, command: str, name: str) -> None:
        instance = self.server.instances.get(name)
        if instance is None or command not in ("start", "stop"):
            self._answer(404, "text/plain", b"no such instance or command")
            return
        self.server.note(command, name, "begins")
        instance.start() if command == "start" else instance.stop()
        self.server.note(command, name, "ends")
        self._answer(200, "text/plain", b"")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: `Proxy.note` does."""


def serve(port: int, log: Path, database: Path) -> None:
    """Serve until interrupted; the first line on stdout is the address."""
    instances = [Instance(name, database) for name in ("1", "2")]
    # instances end with it, however it ends
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(log.open("w", encoding="utf-8"))
        try:
            proxy = stack.enter_context(Proxy(port, instances, file))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            sys.exit(f"two_shops.py: 127.0.0.1:{port}: {why}; give another --port")
        for instance in instances:
            stack.callback(instance.stop)
            instance.start()
        print(f"http://127.0.0.1:{proxy.server_port}", flush=True)
        try:
            proxy.serve_forever()
        except KeyboardInterrupt:
            sys.exit(130)


def request(command: str, name: str, port: int) -> None:
    """Send a command to the proxy."""
    url = f"http://127.0.0.1:{port}{COMMANDS}{command}/{name}"
    try:
        urllib.request.urlopen(url, data=b"", timeout=COMMAND_S).close()
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f"two_shops.py: cannot {command} {name} by {url}: {error}")


def main() -> None:
    """Serve, or pass a command on to the serving process."""
    parser = argparse.ArgumentParser(description="Two instances of webservice.py and a proxy.")
    parser.add_argument("command", nargs="?", choices=("serve", "start", "stop"), default="serve")
    parser.add_argument("instance", nargs="?", choices=("1", "2"), default="2")
    parser.add_argument("--port", type=int, default=PORT, help="port of the proxy on 127.0.0.1")
    parser.add_argument("--log", type=Path, default=Path("proxy.log"), help="log of the proxy")
    parser.add_argument("--database", type=Path, default=Path("shop.sqlite3"), help="of both")
    args = parser.parse_args()
    if args.command == "serve":
        serve(args.port, args.log, args.database)
    else:
        request(args.command, args.instance, args.port)


if __name__ == "__main__":
    main()
