"""A connection to the trace store that sends prepared commands and counts the replies.

Not redis-py, whose pipelines cost more than all other work for a trace. Every wait has a timeout,
and error replies are cut to their first word, because they may quote the commands. Imports nothing
of osbench: the driver for services under test has this file, too (deploy/osprofiler).
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from redis.connection import parse_url


class StoreRefusal(ConnectionError):
    """The store rejected the login or the selected database; it can be reached."""


class SpanStore:
    """A connection to a Redis: `connect`, then `send`; an error closes it. For one thread."""

    def __init__(self, conn_str: str, timeout_s: float) -> None:
        """Parse the connection string; connects to nothing yet.

        `timeout_s` bounds connecting, and each `send` with its replies, seconds. Raises ValueError
        for a connection string that is malformed or not of a Redis.
        """
        try:
            scheme = urlsplit(conn_str).scheme
            self._url: Mapping[str, Any] = parse_url(conn_str)  # type: ignore[no-untyped-call]  # redis-py has no hints here
        except ValueError:
            # the reason may quote part of the password, taken for a port
            raise ValueError("malformed connection string; write redis://HOST:PORT") from None
        self._tls, self._unix = scheme == "rediss", scheme == "unix"
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        #: The store's address for messages.
        self.place = self._url["path"] if self._unix else f"{self._host}:{self._port}"

    @property
    def _host(self) -> str:
        return str(self._url.get("host") or "localhost")

    @property
    def _port(self) -> int:
        return int(self._url.get("port") or 6379)

    def connect(self) -> None:
        """Open the connection unless it is open.

        Raises OSError if the store cannot be reached, or StoreRefusal, a subclass, if it rejects
        the login.
        """
        if self._socket is not None:
            return
        deadline = time.monotonic() + self._timeout_s
        try:
            self._open()
            for command in self._greeting():
                (refusal,) = self._exchange(_packed_command(command), 1, deadline)
                if refusal is not None:
                    raise StoreRefusal(f"{command[0]} is refused: {refusal}")
        except BaseException:
            self.close()
            raise

    def send(self, commands: bytes, replies: int) -> list[str | None]:
        """Send commands; return for each of `replies` replies None (success) or its error code.

        `commands` are in the Redis protocol. Raises OSError (TimeoutError among them) if the
        connection fails, and closes it.
        """
        try:
            return self._exchange(commands, replies, time.monotonic() + self._timeout_s)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self) -> None:
        if self._unix:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(self._timeout_s)
            self._socket.connect(self._url["path"])
            return
        self._socket = socket.create_connection((self._host, self._port), self._timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls:
            context = _tls_context(self._url)
            self._socket = context.wrap_socket(self._socket, server_hostname=self._host)

    def _greeting(self) -> list[list[str]]:
        commands = []
        password = self._url.get("password")
        if password:
            user = self._url.get("username")
            commands.append(["AUTH", user, password] if user else ["AUTH", password])
        if self._url.get("db"):
            commands.append(["SELECT", str(self._url["db"])])
        return commands

    def _exchange(self, commands: bytes, replies: int, deadline: float) -> list[str | None]:
        assert self._socket is not None
        self._socket.settimeout(_remaining_s(deadline))
        self._socket.sendall(commands)
        answers: list[str | None] = []
        rest = b""
        while len(answers) < replies:
            self._socket.settimeout(_remaining_s(deadline))
            received = self._socket.recv(65536)
            if not received:
                raise ConnectionResetError("closed by the store")
            *lines, rest = (rest + received).split(b"\r\n")
            answers.extend(map(_answer, lines))
        return answers


def _remaining_s(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _answer(line: bytes) -> str | None:
    if line[:1] not in (b":", b"+", b"-"):
        raise ConnectionError("it does not reply as Redis does; check its address")
    if line[:1] != b"-":
        return None
    return line[1:].split(b" ")[0][:32].decode("ascii", "replace")


def _packed_command(command: Sequence[str]) -> bytes:
    parts = [f"*{len(command)}\r\n".encode()]
    for word in command:
        encoded = word.encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(encoded), encoded))
    return b"".join(parts)


def _tls_context(url: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=url.get("ssl_ca_certs"))
    if url.get("ssl_cert_reqs") == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if url.get("ssl_certfile"):
        context.load_cert_chain(url["ssl_certfile"], url.get("ssl_keyfile"))
    return context
