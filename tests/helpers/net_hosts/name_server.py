"""A name server that answers some questions, and others never: it would forward them to nobody.

As a script it is the server, at port 53 of all addresses of its host, for records of type A:

    name_server.py LOG NAME=ADDRESS ...

Each question is a line in LOG: its type, its name, and `answered` or `ignored`.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

_A, _IN = 1, 1
_TTL_S = 0


def asked(question: bytes) -> tuple[str, int, int]:
    """Name, type and end of the question of a DNS message (RFC 1035, section 4.1)."""
    labels, at = [], 12
    while question[at]:
        end = at + 1 + question[at]
        labels.append(question[at + 1 : end].decode("ascii", errors="replace"))
        at = end
    (kind,) = struct.unpack_from(">H", question, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def answer(question: bytes, end: int, address: str) -> bytes:
    """The message that answers a question with an address."""
    head = question[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
    # the name is that of the question, by its place in the message
    record = struct.pack(">HHHIH", 0xC00C, _A, _IN, _TTL_S, 4) + socket.inet_aton(address)
    return head + question[12:end] + record


def main() -> None:
    """Serve until killed."""
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    known = dict(one.split("=") for one in sys.argv[2:])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", 53))
        os.write(log, b"ready\n")
        while True:
            question, client = server.recvfrom(4096)
            name, kind, end = asked(question)
            found = known.get(name) if kind == _A else None
            told = "answered" if found else "ignored"
            os.write(log, f"{kind} {name} {told}\n".encode())
            if found:
                server.sendto(answer(question, end, found), client)


if __name__ == "__main__":
    main()
