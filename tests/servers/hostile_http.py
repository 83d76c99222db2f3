"""An HTTP server on loopback that answers as no server should, by the path of the request."""

from __future__ import annotations

import contextlib
import gzip
import re
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import zstandard

_OK = b"HTTP/1.1 200 OK\r\n"
FINE = _OK + b"Content-Length: 4\r\n\r\nfine"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b"a body that is worth its coding " * 40


def _sized(body: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join([_OK[:-2], *lines, b"Content-Length: %d" % len(body), b"", body])


#: Bytes that are sent at once, and whether the connection is closed after them.
ANSWERS: dict[str, tuple[bytes, bool]] = {
    "plain": (FINE, False),
    "chunks": (_CHUNKED + b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", False),
    "chunk-extensions": (_CHUNKED + b"3;x=y\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", False),
    "chunk-without-size": (_CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n", True),
    "chunk-cut": (_CHUNKED + b"9\r\nabc", True),
    "chunks-without-end": (_CHUNKED + b"3\r\nabc\r\n", True),
    "chunk-size-cut": (_CHUNKED + b"3\r\nabc\r\n1", True),
    "chunk-endless-size": (_CHUNKED + b"1" * 100_000, True),
    "endless-line": (_OK + b"X-A: " + b"x" * 200_000, True),
    "many-lines": (_OK + b"X-A: 1\r\n" * 200 + b"Content-Length: 0\r\n\r\n", True),
    "nothing": (b"", True),
    "half-a-head": (b"HTTP/1.1 200 OK\r\nContent-Le", True),
    "body-cut": (_OK + b"Content-Length: 10\r\n\r\nabc", True),
    "more-than-its-length": (_OK + b"Content-Length: 3\r\n\r\nabcdef", False),
    "two-answers": (FINE + _sized(b"not asked for"), False),
    "until-close": (_OK + b"\r\nuntil the end", True),
    "http-1.0": (b"HTTP/1.0 200 OK\r\n\r\nold", True),
    "lengths-differ": (_OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", True),
    "lengths-same": (_OK + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", False),
    "length-no-number": (_OK + b"Content-Length: ten\r\n\r\nabcd", True),
    "length-and-chunked": (
        _OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        False,
    ),
    "folded": (_OK + b"X-A: 1\r\n  2\r\nContent-Length: 4\r\n\r\nfine", False),
    "bare-line-feeds": (b"HTTP/1.1 200 OK\nContent-Length: 4\n\nfine", False),
    "not-http": (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", True),
    "http-2": (b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", True),
    "status-of-words": (b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n", True),
    "no-reason": (b"HTTP/1.1 201\r\nContent-Length: 2\r\n\r\nab", False),
    "continue": (b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + FINE, False),
    "hints": (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + FINE, True),
    "no-content": (b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", False),
    "not-modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", False),
    "gzip": (_sized(gzip.compress(BODY), b"Content-Encoding: gzip"), False),
    "deflate": (_sized(zlib.compress(BODY), b"Content-Encoding: deflate"), False),
    "gzip-twice": (
        _sized(gzip.compress(gzip.compress(BODY)), b"Content-Encoding: gzip, gzip"),
        False,
    ),
    "gzip-broken": (_sized(b"no gzip at all", b"Content-Encoding: gzip"), False),
    "gzip-cut": (_sized(gzip.compress(BODY)[:-12], b"Content-Encoding: gzip"), False),
    "gzip-cut-chunks": (
        _CHUNKED[:-2]
        + b"Content-Encoding: gzip\r\n\r\nA\r\n%b\r\n0\r\n\r\n" % gzip.compress(BODY)[:10],
        False,
    ),
    "gzip-empty": (_sized(b"", b"Content-Encoding: gzip"), False),
    "gzip-part": (
        b"HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n"
        + gzip.compress(BODY)[20:29],
        False,
    ),
    "deflate-cut": (_sized(zlib.compress(BODY)[:-9], b"Content-Encoding: deflate"), False),
    "deflate-raw": (_sized(zlib.compress(BODY)[2:-4], b"Content-Encoding: deflate"), False),
    "zstd-cut": (_sized(zstandard.compress(BODY)[:-9], b"Content-Encoding: zstd"), False),
    "zstd": (_sized(zstandard.compress(BODY), b"Content-Encoding: zstd"), False),
    "coding-unknown": (_sized(b"as it is", b"Content-Encoding: strange"), False),
}


class HostileServer:
    """Threads on loopback, one a connection.

    Beside ANSWERS: `/drip` sends byte after byte, `/endless-drip` without end, `/silent` nothing,
    `/stall` does not end its body, `/reset` resets in the head, `/reset-body` in the body,
    `/hang-up` closes after an answer, `/leave` after it got the next request,
    `/late-second` sends a second answer later, `/slow-reader` says how long the body was,
    `/endless-head` sends header lines until nobody listens, `/down/N` redirects N times,
    `/slowly-down/` for ever.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        #: Connections that were taken.
        self.connections = 0
        #: Set when the second answer of `/late-second` is sent.
        self.second = threading.Event()
        self._special: dict[str, Callable[[socket.socket], bool]] = {
            "drip": _drip,
            "endless-drip": _endless_drip,
            "late-second": self._late_second,
            "silent": _silent,
            "stall": _stall,
            "reset": _reset,
            "reset-body": _reset_body,
            "hang-up": _hang_up,
            "leave": _leave,
            "endless-head": _endless_head,
        }

    @property
    def url(self) -> str:
        """Where it answers, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while True:
                path, length = _asked(connection)
                if not path or not self._answer(connection, path, length):
                    return

    def _answer(self, connection: socket.socket, path: str, length: int) -> bool:
        """Whether the connection goes on."""
        if path == "slow-reader":
            connection.sendall(_sized(b"%d" % length))
            return True
        if path.startswith("slowly-down/"):
            time.sleep(0.1)
            head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /slowly-down/x\r\n\r\n"
            connection.sendall(head)
            return True
        if path.startswith("down/"):
            left = int(path.rpartition("/")[2])
            if not left:
                connection.sendall(FINE)
            else:
                head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /down/%d\r\n\r\n"
                connection.sendall(head % (left - 1))
            return True
        if path in self._special:
            return self._special[path](connection)
        data, closes = ANSWERS[path]
        connection.sendall(data)
        if closes:
            # what the client still sends must not turn the end into a reset
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(5)
            while connection.recv(65536):
                pass
        return not closes

    def _late_second(self, connection: socket.socket) -> bool:
        connection.sendall(FINE)
        time.sleep(0.05)
        connection.sendall(_sized(b"of nobody"))
        self.second.set()
        return True


def _asked(connection: socket.socket) -> tuple[str, int]:
    """The path of the next request without its first slash, and the length of its body.

    The path is "" at the end of the connection.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(65536)
        if not data:
            return "", 0
        head += data
    head, _, body = head.partition(b"\r\n\r\n")
    # a proxy is asked for whole addresses
    path = urlsplit(head.split(b" ", 2)[1].decode("ascii")).path[1:]
    length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
    expected = int(length[1]) if length else 0
    got = len(body)
    while got < expected:
        if path == "slow-reader":
            time.sleep(0.001)
        data = connection.recv(65536)
        if not data:
            return "", 0
        got += len(data)
    return path, got


def _drip(connection: socket.socket) -> bool:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in ANSWERS["chunks"][0]:
        connection.sendall(bytes([byte]))
        time.sleep(0.002)
    return True


def _endless_drip(connection: socket.socket) -> bool:
    connection.sendall(_OK + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.01)


def _silent(connection: socket.socket) -> bool:
    connection.settimeout(10)
    return bool(connection.recv(1))


def _stall(connection: socket.socket) -> bool:
    connection.sendall(_OK + b"Content-Length: 10\r\n\r\nabc")
    return _silent(connection)


def _reset_body(connection: socket.socket) -> bool:
    connection.sendall(_OK + b"Content-Length: 10\r\n\r\nabc")
    # so that it is read before the reset takes it away
    time.sleep(0.2)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def _reset(connection: socket.socket) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def _hang_up(connection: socket.socket) -> bool:
    connection.sendall(FINE)
    return False


def _leave(connection: socket.socket) -> bool:
    connection.sendall(FINE)
    _asked(connection)
    return False


def _endless_head(connection: socket.socket) -> bool:
    connection.sendall(_OK)
    while True:
        connection.sendall(b"X-More: and more\r\n" * 100)


@contextlib.contextmanager
def hostile_server() -> Iterator[HostileServer]:
    """Serve for as long as the block runs."""
    server = HostileServer()
    listening = threading.Thread(target=server._serve, daemon=True, name="hostile-http")
    listening.start()
    try:
        yield server
    finally:
        # wakes the thread that accepts
        server._listener.shutdown(socket.SHUT_RDWR)
        server._listener.close()
        listening.join(10)
