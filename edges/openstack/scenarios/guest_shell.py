"""SSH to a server that has just booted: waits for it, runs a command, bounds time and output."""

from __future__ import annotations

import importlib
import io
import socket
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.ports import clock as time
from osbench.edges.openstack.scenarios.guest_command import GuestCommand

#: Longest time of one attempt to connect, and of a command as in Rally, seconds.
_ATTEMPT_S = 10.0
COMMAND_S = 3600.0
#: Most output of a command that is kept of each of its two streams, bytes.
MOST_OUTPUT = 1024 * 1024
#: Mode of an uploaded file, as in Rally.
_MODE = 0o755
_BLOCK = 32 * 1024
_POLL_S = 0.02


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The result of a command: exit code, and the output of both streams as text."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True, kw_only=True)
class Login:
    """The access to a server by SSH: address, user, and a key, a password or both."""

    host: str
    port: int
    username: str
    password: str | None
    #: Private key in PEM format; "" for none.
    key: str


class GuestShell:
    """A connection by SSH to one server."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._ssh = load_library()
        self._client: Any = None

    def connect(self) -> bool:
        """Try to log in once; return whether it worked.

        A server that boots refuses connections, and keys until it has got them.
        """
        client = self._ssh.SSHClient()
        # a server that has just booted has a new, unknown key
        client.set_missing_host_key_policy(self._ssh.AutoAddPolicy())
        try:
            client.connect(
                self._login.host,
                port=self._login.port,
                username=self._login.username,
                password=self._login.password,
                pkey=self._key(),
                timeout=_ATTEMPT_S,
                banner_timeout=_ATTEMPT_S,
                auth_timeout=_ATTEMPT_S,
                allow_agent=False,
                look_for_keys=False,
            )
        except (self._ssh.SSHException, OSError, EOFError):
            client.close()
            return False
        self._client = client
        return True

    def run(self, command: GuestCommand, limit_s: float = COMMAND_S) -> CommandResult:
        """Upload the file of a command, run it, and return its result.

        Output beyond `MOST_OUTPUT` is read and discarded. Raises TimeoutError after `limit_s`
        seconds, OSError or paramiko's SSHException if the connection fails.
        """
        if command.local_path:
            self._upload(command.local_path, command.remote_path)
        channel = self._client.get_transport().open_session(timeout=_ATTEMPT_S)
        with channel:
            channel.exec_command(command.line)
            return _exchange(channel, command.script.encode(), limit_s)

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            self._client.close()

    def _upload(self, local: str, remote: str) -> None:
        with self._client.open_sftp() as files:
            files.put(local, remote)
            files.chmod(remote, _MODE)

    def _key(self) -> Any:
        if not self._login.key:
            return None
        for kind in (self._ssh.RSAKey, self._ssh.Ed25519Key, self._ssh.ECDSAKey):
            try:
                return kind.from_private_key(io.StringIO(self._login.key))
            except self._ssh.SSHException:
                continue
        raise DeploymentError("the private key of the key pair has an unknown type")


def load_library() -> Any:
    """Return the module paramiko. Raises DeploymentError if it is not installed."""
    try:
        return importlib.import_module("paramiko")
    except ImportError:
        raise DeploymentError(
            "commands in servers need paramiko: pip install 'osbench[ssh]' on all hosts"
        ) from None


def _exchange(channel: Any, script: bytes, limit_s: float) -> CommandResult:
    """Send the input of a running command, read its output, and await its end.

    All three go on at once: a command may write before it has read everything.
    """
    channel.settimeout(0.0)
    end = time.monotonic() + limit_s
    streams = (bytearray(), bytearray())
    sent, open_ = 0, True
    while True:
        moved = 0
        if sent < len(script) and channel.send_ready():
            moved += (some := channel.send(script[sent : sent + _BLOCK]))
            sent += some
        elif sent >= len(script) and open_:
            channel.shutdown_write()
            open_ = False
        for kept, ready, receive in (
            (streams[0], channel.recv_ready, channel.recv),
            (streams[1], channel.recv_stderr_ready, channel.recv_stderr),
        ):
            if ready():
                found = receive(_BLOCK)
                moved += len(found)
                kept.extend(found[: MOST_OUTPUT - len(kept)])
        if moved:
            continue
        if channel.exit_status_ready() and not (
            channel.recv_ready() or channel.recv_stderr_ready()
        ):
            break
        if channel.closed:
            raise ConnectionError("the server closed the connection before the command had ended")
        if time.monotonic() > end:
            raise TimeoutError(f"the command has not ended after {limit_s:g} s")
        time.sleep(_POLL_S)
    output, errors = (bytes(stream).decode(errors="replace") for stream in streams)
    return CommandResult(code=channel.recv_exit_status(), output=output, errors=errors)


def is_reachable(address: str) -> bool | None:
    """Return True if a host responds to an echo request within a second, else None.

    Raises DeploymentError if the program `ping` is missing.
    """
    # imported here: most scenarios start no program
    subprocess = importlib.import_module("subprocess")
    try:
        socket.getaddrinfo(address, None, flags=socket.AI_NUMERICHOST)
        done = subprocess.run(
            ["ping", "-c1", "-w1", address], capture_output=True, check=False, timeout=_ATTEMPT_S
        )
    except socket.gaierror:
        raise DeploymentError(f"the server has no address that can be reached: {address}") from None
    except FileNotFoundError:
        raise DeploymentError(
            "wait_for_ping needs the program ping on each worker; install it, or give"
            " wait_for_ping: false"
        ) from None
    except subprocess.TimeoutExpired:
        return None
    return True if done.returncode == 0 else None
