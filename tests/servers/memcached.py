"""A private memcached, from Debian's package, and its numbers as memcached_exporter has them."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator

from helpers.json_server import LoopbackServer, QuietHandler
from servers import child

#: Most connections at once; it keeps some of them for itself.
CONNECTIONS = 100


class Memcached(LoopbackServer):
    """A running memcached with 2 MB for items, and an exporter of its numbers.

    Names and types are those of pkg/exporter/exporter.go of prometheus/memcached_exporter.
    """

    def __init__(self, port: int) -> None:
        super().__init__(_ExporterHandler)
        self.port = port

    def ask(self, command: str, end: str = "END\r\n") -> str:
        """Send a command of the text protocol; the answer, up to its end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(command.encode())
            answer = ""
            while not answer.endswith(end):
                part = connection.recv(1 << 16)
                assert part, answer
                answer += part.decode()
            return answer

    def stats(self, of: str = "") -> dict[str, str]:
        """Its numbers by their names."""
        lines = self.ask(f"stats {of}".strip() + "\r\n").splitlines()
        triples = (line.split(" ", 2) for line in lines if line.startswith("STAT "))
        return {name: value for _, name, value in triples}

    def metrics(self) -> str:
        """The page of the exporter, as far as it is of interest here."""
        stats, settings = self.stats(), self.stats("settings")
        lines = [
            "# TYPE memcached_up gauge",
            "memcached_up 1",
            "# TYPE memcached_current_connections gauge",
            f"memcached_current_connections {stats['curr_connections']}",
            "# TYPE memcached_max_connections gauge",
            f"memcached_max_connections {settings['maxconns']}",
            "# TYPE memcached_items_evicted_total counter",
            f"memcached_items_evicted_total {stats['evictions']}",
            "# TYPE memcached_slab_items_evicted_total counter",
            'memcached_slab_items_evicted_total{slab="1"} 0',
            "# TYPE memcached_commands_total counter",
        ]
        for of in ("get", "delete", "incr", "decr", "cas", "touch"):
            for status, name in (("hit", "hits"), ("miss", "misses")):
                labels = f'{{command="{of}",status="{status}"}}'
                lines.append(f"memcached_commands_total{labels} {stats[f'{of}_{name}']}")
        return "\n".join(lines) + "\n"


class _ExporterHandler(QuietHandler):
    server: Memcached

    def do_GET(self) -> None:
        body = self.server.metrics().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def memcached() -> Iterator[Memcached]:
    """A running memcached; skips the test if the Debian package memcached is missing."""
    path = shutil.which("memcached")
    if path is None:
        child.missing("memcached is not installed (Debian package memcached)")
    port = child.free_port()
    limits = ["-m", "2", "-c", str(CONNECTIONS), "-t", "1"]
    # who may be root here is asked for a user
    command = [path, "-l", "127.0.0.1", "-p", str(port), "-u", "root", *limits]
    with child.folder() as folder:
        running = child.Child(command, folder=folder, log=folder / "log")
        try:
            found = Memcached(port)
            assert running.wait_until(lambda: _answers(found)), running.tail()
            yield found
        finally:
            running.end()


def _answers(server: Memcached) -> bool:
    try:
        return bool(server.stats())
    except OSError:
        return False
