"""An Ethernet switch in a process, whose cables delay, lose and cut.

As a script it is the switch: it makes a TAP interface in the network namespace of each process that
it is given, and passes frames between them. Not every kernel has netem, and this one needs nothing
but TAP devices; a direction of a cable has its own delay, so that ways can differ.

    switch.py --control SOCKET --seed SEED NAME=PID ...

A request on the socket is a line, {"port": NAME, "sent": CABLE, "received": CABLE}, where CABLE has
the fields of `Cable`; the answer is a line, too.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Name of the interface in each namespace.
INTERFACE = "eth0"

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
#: Frames of other sizes do not come: what the kernel would offload is off for TAP devices.
_LONGEST = 65536


@dataclass(frozen=True, kw_only=True)
class Cable:
    """One direction between a host and the switch."""

    #: How long each frame takes, seconds, and the most by which it takes longer, at random.
    delay_s: float = 0.0
    jitter_s: float = 0.0
    #: Share of the frames that get lost, 0 to 1.
    loss: float = 0.0
    #: Nothing passes, and neither end is told.
    cut: bool = False
    #: Bits per second that pass; 0 is any number. Frames wait for each other.
    bits_s: float = 0.0


@dataclass
class Port:
    """A host at the switch."""

    name: str
    #: The TAP device.
    device: int
    #: From the host, and to it.
    sent: Cable = field(default_factory=Cable)
    received: Cable = field(default_factory=Cable)
    #: When the last frame to each other host arrives: frames of one way do not overtake each other.
    arrivals: dict[str, float] = field(default_factory=dict)
    #: When each direction of its cable is free for another frame.
    free_at: dict[str, float] = field(default_factory=dict)


class Switch:
    """Passes frames; learns which host has which address."""

    def __init__(self, ports: list[Port], control: socket.socket, seed: int) -> None:
        self._ports = {port.device: port for port in ports}
        self._control = control
        self._chance = random.Random(seed)
        self._places: dict[bytes, Port] = {}
        #: Arrival, order, host, frame.
        self._flying: list[tuple[float, int, Port, bytes]] = []
        self._count = 0

    def serve(self) -> None:
        """Pass frames for ever."""
        watched = [*self._ports, self._control]
        while True:
            wait_s = None
            if self._flying:
                wait_s = max(0.0, self._flying[0][0] - time.monotonic())
            ready, _, _ = select.select(watched, [], [], wait_s)
            for one in ready:
                if one is self._control:
                    self._answer()
                else:
                    self._take(self._ports[one])
            self._deliver()

    def _take(self, port: Port) -> None:
        """Read what a host sends, and put it on its way."""
        while True:
            try:
                frame = os.read(port.device, _LONGEST)
            except BlockingIOError:
                return
            self._places[frame[6:12]] = port
            known = self._places.get(frame[:6])
            # what is for all, or for a host that is not known yet
            others = [one for one in self._ports.values() if one is not port]
            for other in [known] if known is not None else others:
                self._send(port, other, frame)

    def _send(self, port: Port, other: Port, frame: bytes) -> None:
        at = time.monotonic()
        ways = (port, "sent", port.sent), (other, "received", other.received)
        for end, way, cable in ways:
            if cable.cut or self._chance.random() < cable.loss:
                return
            if cable.bits_s:
                at = end.free_at[way] = (
                    max(at, end.free_at.get(way, at)) + 8 * len(frame) / cable.bits_s
                )
            at += cable.delay_s + cable.jitter_s * self._chance.random()
        port.arrivals[other.name] = at = max(at, port.arrivals.get(other.name, 0.0))
        self._count += 1
        heapq.heappush(self._flying, (at, self._count, other, frame))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._flying and self._flying[0][0] <= now:
            _, _, port, frame = heapq.heappop(self._flying)
            # an interface that is down, or a host that takes nothing more
            with contextlib.suppress(OSError):
                os.write(port.device, frame)

    def _answer(self) -> None:
        """Take a request of the control socket."""
        connection, _ = self._control.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as stream:
            self._change(json.loads(stream.readline()))
            stream.write("done\n")

    def _change(self, request: dict[str, Any]) -> None:
        (port,) = [one for one in self._ports.values() if one.name == request["port"]]
        port.sent, port.received = Cable(**request["sent"]), Cable(**request["received"])
        # what was slow does not keep back what is fast
        port.arrivals.clear()


def tap_in(pid: int) -> int:
    """A TAP device in the network namespace of a process; it goes when this process ends."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _enter(other)
        try:
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            asked = struct.pack("16sH14x", INTERFACE.encode(), _IFF_TAP | _IFF_NO_PI)
            fcntl.ioctl(device, _TUNSETIFF, asked)
        finally:
            _enter(own)
    finally:
        os.close(own)
        os.close(other)
    return device


def _enter(namespace: int) -> None:
    # os.setns is new in Python 3.12
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("hosts", nargs="+")
    args = parser.parse_args()
    ports = []
    for host in args.hosts:
        name, _, pid = host.partition("=")
        ports.append(Port(name, tap_in(int(pid))))
    control = socket.socket(socket.AF_UNIX)
    part = args.control.with_suffix(".part")
    control.bind(str(part))
    control.listen()
    part.rename(args.control)
    Switch(ports, control, args.seed).serve()


if __name__ == "__main__":
    main()
