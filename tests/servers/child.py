"""A server process that never outlives the tests, its folder and its port."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

#: A machine that runs tests is slow and shared: within this all must happen that is to happen.
PATIENCE_S = float(os.environ.get("OSBENCH_TEST_PATIENCE_S", "300"))

# Reads until the tests' process is gone, however it went, then ends the server's process group
# and removes its folder. A server that was stopped in good order has ended its leash before.
LEASH = 'cat >/dev/null; kill -KILL "-$1"; rm -rf -- "$2"'


#: Below the ports that Linux gives to outgoing connections: no client takes one of these.
_PORTS = range(10_000, 32_000)
#: So many processes of tests have ports of their own; each hands all of its out before any again.
_SHARES = 16


def _shared_out() -> Iterator[int]:
    share = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARES
    mine = _PORTS[share::_SHARES]
    first = random.randrange(len(mine))
    return itertools.cycle([*mine[first:], *mine[:first]])


_ports = _shared_out()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free, and that this process's tests were not given lately."""
    for port in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            # what has just ended there may be waiting for its last packets
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("ports do not end")


def missing(reason: str) -> NoReturn:
    """Skip the test for want of a server; in CI, which installs them all, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


class Child:
    """A server process with its own session; it never outlives the tests.

    `folder` holds all it writes and is removed when the tests are killed. The server's working
    directory is `cwd`, else the folder.
    """

    def __init__(
        self,
        command: list[str],
        *,
        folder: Path,
        log: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        assert folder.is_relative_to(tempfile.gettempdir()), "only temporary folders are removed"
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=cwd or folder,
                env=env,
                pass_fds=inherited,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._leash = subprocess.Popen(
            ["/bin/sh", "-c", LEASH, "leash", str(self.process.pid), str(folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait_until(self, ready: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
        """Whether `ready` came true within the time; False at once where the server has ended."""
        deadline = time.monotonic() + within_s
        while self.process.poll() is None and time.monotonic() < deadline:
            if ready():
                return True
            time.sleep(0.02)
        return False

    def end(self, how: signal.Signals = signal.SIGTERM, within_s: float = 10.0) -> None:
        """Signal the server, wait, and kill its whole group where that was not enough."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._leash.kill()
        self._leash.communicate()

    def tail(self) -> str:
        """The last lines that the server wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder for one server."""
    # Short, because the path of a unix socket is limited to 107 bytes.
    path = Path(tempfile.mkdtemp(prefix="osb-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
