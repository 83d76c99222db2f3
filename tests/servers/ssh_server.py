"""An SSH server on a loopback address that runs commands as processes of this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko

from servers.child import free_port


class _Door(paramiko.ServerInterface):
    """Lets one user in, with a key or a password, and starts commands."""

    def __init__(self, server: SshServer) -> None:
        self._server = server

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,password"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._server.tries += 1
        # as a server that has not got its keys yet
        ready = self._server.tries > self._server.refusals
        right = username == "guest" and key.get_base64() == self._server.public_key
        return paramiko.AUTH_SUCCESSFUL if ready and right else paramiko.AUTH_FAILED

    def check_auth_password(self, username: str, password: str) -> int:
        right = (username, password) == ("guest", self._server.password)
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(
            target=self._server.execute, args=(channel, command.decode()), daemon=True
        ).start()
        return True


class _Files(paramiko.SFTPServerInterface):
    """Files of the machine, for uploads."""

    def open(self, path: str, flags: int, attr: Any) -> paramiko.SFTPHandle:
        handle = paramiko.SFTPHandle(flags)
        handle.writefile = Path(path).open("wb")  # type: ignore[attr-defined]  # noqa: SIM115
        return handle

    def stat(self, path: str) -> paramiko.SFTPAttributes:
        return paramiko.SFTPAttributes.from_stat(Path(path).stat())

    def chattr(self, path: str, attr: paramiko.SFTPAttributes) -> int:
        if attr.st_mode is not None:
            Path(path).chmod(attr.st_mode)
        return paramiko.SFTP_OK


class SshServer:
    """A server for the user `guest`; use it by `ssh_server`."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.port = free_port()
        self.password = "right"
        #: Base64 of the key that is let in.
        self.public_key = ""
        #: How many logins with a key are refused first, and how many there were.
        self.refusals = 0
        self.tries = 0
        self.commands: list[str] = []
        self._key = paramiko.RSAKey.generate(2048)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, self.port))
        self._socket.listen(20)
        self._transports: list[paramiko.Transport] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def execute(self, channel: paramiko.Channel, command: str) -> None:
        """Run a command with the input of a channel, and send its output and exit code."""
        self.commands.append(command)
        pipe = subprocess.PIPE
        with subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe
        ) as process:
            # a client that has no input may never say so
            threading.Thread(target=_feed, args=(channel, process), daemon=True).start()
            errors: list[bytes] = []
            assert process.stdout is not None
            assert process.stderr is not None
            reader = threading.Thread(
                target=lambda: errors.append(process.stderr.read() if process.stderr else b"")
            )
            reader.start()
            output = process.stdout.read()
            reader.join()
            with contextlib.suppress(OSError), channel:
                channel.sendall(output)
                channel.sendall_stderr(b"".join(errors))
                channel.send_exit_status(process.wait())

    def close(self) -> None:
        """Stop listening, and end all connections."""
        self._socket.close()
        for transport in self._transports:
            transport.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            self._transports.append(transport)
            transport.add_server_key(self._key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Files)
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(server=_Door(self))


def _feed(channel: paramiko.Channel, process: subprocess.Popen[bytes]) -> None:
    """Give the input of a channel to a process, as far as both want it."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):
        while data := channel.recv(32_768):
            process.stdin.write(data)
            process.stdin.flush()
        process.stdin.close()


@contextlib.contextmanager
def ssh_server(host: str = "127.0.0.1") -> Iterator[SshServer]:
    """A running server."""
    server = SshServer(host)
    try:
        yield server
    finally:
        server.close()


def key_pair() -> tuple[str, str]:
    """A private key in PEM format, and its public key in base64."""
    key = paramiko.RSAKey.generate(2048)
    read, write = os.pipe()
    with os.fdopen(write, "w") as file:
        key.write_private_key(file)
    with os.fdopen(read) as file:
        return file.read(), key.get_base64()
