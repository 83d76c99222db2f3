"""A process that beats through Redis by a name whose lookup takes long, with new connections.

Arguments: URL of Redis by the name, seconds of a lookup, number of beats. Prints the longest time
between two beats, seconds, and how many lookups were begun.
"""

from __future__ import annotations

import socket
import sys
import time

from osbench.common.protocol.redis_client import connect, translating_errors

LOOKUPS: list[str] = []
NAME = "redis.made-up"


def slow_down(lookup_s: float) -> None:
    """Have the made-up name mean this host, after a while."""
    real = socket.getaddrinfo

    def slow(host, port, *more, **named):  # type: ignore[no-untyped-def]
        if host == NAME:
            LOOKUPS.append(host)
            time.sleep(lookup_s)
            host = "127.0.0.1"
        return real(host, port, *more, **named)

    socket.getaddrinfo = slow


def main() -> None:
    url, lookup_s, count = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    slow_down(lookup_s)
    longest, last = 0.0, 0.0
    for beat in range(count):
        # each beat on a connection of its own, as after one that was lost
        with connect(url, 5.0) as client, translating_errors(client):
            client.set("beat", beat)
        now = time.monotonic()
        longest, last = max(longest, now - last if last else 0.0), now
        time.sleep(0.2)
    print(longest, len(LOOKUPS))


if __name__ == "__main__":
    from osbench.common.protocol import kept_addresses

    # so that lookups are under way while it beats
    kept_addresses.AGAIN_S = 0.0
    main()
