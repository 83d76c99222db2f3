"""Hosts in network namespaces at a switch; all goes with the processes that hold it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from helpers.net_hosts import switch
from helpers.net_hosts.switch import Cable
from helpers.runs import Site, site
from servers.child import PATIENCE_S, Child, folder

#: Addresses of the hosts: this with their numbers, from 1.
NETWORK = "10.77.0."
_WITHIN_S = 30.0
_NEEDED = ("unshare", "nsenter", "setpriv", "ip", "mount")
#: What a namespace needs, tried in one that goes at once.
_TRIAL = "hostname trial && mount --bind /etc/hosts /etc/hosts && ip tuntap add mode tap name trial"
_NAMESPACES = ("unshare", "--net", "--uts", "--mount")


@functools.cache
def reason_against() -> str:
    """Why this machine cannot have such hosts; "" where it can."""
    if os.geteuid() != 0:
        return "hosts in network namespaces need root"
    lacking = [name for name in _NEEDED if shutil.which(name) is None]
    if lacking:
        return f"hosts in network namespaces need the commands {', '.join(lacking)}"
    tried = subprocess.run(
        [*_NAMESPACES, "sh", "-c", _TRIAL], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        return f"no hosts in network namespaces here: {tried.stderr.strip()}"
    return ""


def need_hosts() -> None:
    """Skip the test where this machine cannot have such hosts."""
    reason = reason_against()
    if reason:
        pytest.skip(reason)


class NetHost:
    """A host: an interface, a name, and files for the names of others, all its own."""

    def __init__(self, name: str, number: int, where: Path) -> None:
        self.name = name
        self.address = f"{NETWORK}{number}"
        #: Names that it knows, and its name servers; a change counts at once.
        self.hosts = where / f"{name}.hosts"
        self.resolv = where / f"{name}.resolv.conf"
        self.hosts.write_text("127.0.0.1 localhost\n", "utf-8")
        self.resolv.write_text("", "utf-8")
        ready = where / f"{name}.ready"
        script = (
            f"hostname {name} && mount --bind {self.hosts} /etc/hosts"
            f" && mount --bind {self.resolv} /etc/resolv.conf && ip link set lo up"
            f" && touch {ready} && exec sleep infinity"
        )
        self._holder = Child(
            [*_NAMESPACES, "sh", "-c", script], folder=where, log=where / f"{name}.log"
        )
        assert self._holder.wait_until(ready.exists, _WITHIN_S), self._holder.tail()

    @property
    def pid(self) -> int:
        """The process that has its namespaces."""
        return self._holder.process.pid

    def within(self) -> tuple[str, ...]:
        """The command that runs another one on this host, as the same process, in the same folder.

        It ends when the thread that starts it ends.
        """
        return (
            *("setpriv", "--pdeathsig", "KILL", "sh", "-c"),
            f'exec nsenter --target {self.pid} --net --uts --mount --wd="$PWD" "$@"',
            "within",
        )

    def site(self) -> contextlib.AbstractContextManager[Site]:
        """A home from which a user of this host types commands."""
        return site(self.within(), host=self.pid)

    def run(self, *command: str) -> str:
        """Run a command here to its end; returns what it printed. Raises AssertionError."""
        done = subprocess.run(
            [*self.within(), *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def set_up(self) -> None:
        """Give the interface its address."""
        # neighbours that are looked for, as hosts of IPv6 do, are of no use here
        self.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", switch.INTERFACE)
        self.run("ip", "link", "set", switch.INTERFACE, "up")

    def end(self) -> None:
        """End the process that has the namespaces."""
        self._holder.end(signal.SIGKILL)


class Network:
    """Hosts at a switch."""

    def __init__(self, hosts: Sequence[NetHost], control: Path) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._control = control

    def __getitem__(self, name: str) -> NetHost:
        return self._hosts[name]

    def cable(self, name: str, sent: Cable | None = None, received: Cable | None = None) -> None:
        """Change the cable of a host: what it sends, what it receives; perfect where not given."""
        request = {
            "port": name,
            "sent": dataclasses.asdict(sent or Cable()),
            "received": dataclasses.asdict(received or Cable()),
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_WITHIN_S)
            connection.connect(str(self._control))
            connection.sendall(json.dumps(request).encode() + b"\n")
            assert connection.recv(64) == b"done\n"

    def delay(self, name: str, each_way_s: float, jitter_s: float = 0.0) -> None:
        """Have what a host sends and receives take longer."""
        slow = Cable(delay_s=each_way_s, jitter_s=jitter_s)
        self.cable(name, slow, slow)

    def lose(self, name: str, share: float) -> None:
        """Have a share of what a host sends, and of what it receives, get lost."""
        bad = Cable(loss=share)
        self.cable(name, bad, bad)

    def cut(self, name: str) -> None:
        """Pull the cable of a host."""
        self.cable(name, Cable(cut=True), Cable(cut=True))

    def mend(self, *names: str) -> None:
        """Give hosts, or all, a perfect cable."""
        for name in names or self._hosts:
            self.cable(name)


@contextlib.contextmanager
def network(*names: str, seed: int = 1) -> Iterator[Network]:
    """Hosts of these names that know each other by name. `seed` is that of loss and jitter."""
    with folder() as where, contextlib.ExitStack() as stack:
        hosts = []
        for number, name in enumerate(names, 1):
            hosts.append(NetHost(name, number, where))
            stack.callback(hosts[-1].end)
        for host in hosts:
            known = [f"{other.address} {other.name}\n" for other in hosts]
            host.hosts.write_text("127.0.0.1 localhost\n" + "".join(known), "utf-8")
        control = where / "switch.sock"
        child = Child(
            [sys.executable, switch.__file__, "--control", str(control), "--seed", str(seed)]
            + [f"{host.name}={host.pid}" for host in hosts],
            folder=where,
            log=where / "switch.log",
        )
        stack.callback(child.end, signal.SIGKILL)
        assert child.wait_until(control.exists, _WITHIN_S), child.tail()
        for host in hosts:
            host.set_up()
        yield Network(hosts, control)
