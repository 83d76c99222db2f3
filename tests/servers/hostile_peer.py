"""A peer on loopback that misbehaves in one way, whatever it is asked."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

#: What it does: a byte now and then, nothing, a body without end, a body that becomes millions of
#: objects, numbers that no float can hold in fields that many protocols have.
MODES = ("drip", "hang", "flood", "objects", "lie")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_HUGE = b"1" + b"0" * 400
_LIE = (
    b'{"status": "success", "data": {"resultType": "vector", "result": [%(huge)b, %(huge)b]},'
    b' "items": [{"index": {"_id": "a", "status": %(huge)b}}],'
    b' "partialSuccess": {"rejectedSpans": %(huge)b, "rejectedDataPoints": 1e999},'
    b' "token": {"expires_at": %(huge)b, "catalog": %(huge)b},'
    b' "trace": {"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": %(huge)b}]}]}'
    b"]}}"
) % {b"huge": _HUGE}


class HostilePeer:
    """Answers each connection in its mode, in threads, until `close`."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """End all answers."""
        self._over.set()
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self._listener.accept()[0]
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while connection.recv(1 << 16):
                self._misbehave(connection)

    def _misbehave(self, connection: socket.socket) -> None:
        if self._mode == "hang":
            self._over.wait()
        elif self._mode == "drip":
            connection.sendall(_HEAD + b"Content-Length: 100000\r\n\r\n")
            while not self._over.wait(0.02):
                connection.sendall(b" ")
        elif self._mode == "flood":
            connection.sendall(_HEAD + b"Connection: close\r\n\r\n")
            while not self._over.is_set():
                connection.sendall(b" " * 65536)
        else:
            body = b"[" + b"{}," * 2_000_000 + b"{}]" if self._mode == "objects" else _LIE
            connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)


@contextlib.contextmanager
def hostile_peer(mode: str) -> Iterator[str]:
    """Yield the URL of a peer that misbehaves as long as the block runs."""
    peer = HostilePeer(mode)
    try:
        yield peer.url
    finally:
        peer.close()
