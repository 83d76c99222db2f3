"""A shop behind a gateway that tries again: an overload ends, and it may stay down all the same.

    python samples/retrying_shop.py --port 8080
    python samples/retrying_shop.py --port 8080 --retries 0

The shop sells 80 items per second, one after another. The gateway waits 0.3 s for it, and then asks
again, up to three times. The shop does not know that, and also works on calls that were given up.
So a long queue makes more calls than it works off, and keeps itself long: a metastable failure.
Without retries, the same queue is worked off. GET /-/counts has the numbers of both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from dataclasses import asdict, dataclass

#: Bytes of the head of a request at most.
HEAD = 64 * 1024


@dataclass(kw_only=True)
class Counts:
    """Requests of clients, calls of the shop that they made, and responses in time."""

    requests: int = 0
    calls: int = 0
    sold: int = 0


class Shop:
    """Works on one call after another; times are seconds of the event loop."""

    def __init__(self, per_s: float, queue: int) -> None:
        """`per_s`: calls per second; at most `queue` of them wait, and further ones are lost."""
        self._each_s = 1 / per_s
        self._longest_s = queue / per_s
        self._free_at = 0.0

    def call(self, now: float) -> float:
        """Return when a call that comes now has been worked on; infinite if it is lost."""
        self._free_at = max(self._free_at, now)
        if self._free_at - now > self._longest_s:
            return float("inf")
        self._free_at += self._each_s
        return self._free_at


class Gateway:
    """Passes requests to the shop, and tries again if it takes too long."""

    def __init__(self, shop: Shop, patience_s: float, retries: int) -> None:
        self._shop, self._patience_s, self._retries = shop, patience_s, retries
        self.counts = Counts()

    async def buy(self) -> bool:
        """Return whether a call was worked on in time."""
        loop = asyncio.get_running_loop()
        self.counts.requests += 1
        for _ in range(1 + self._retries):
            now = loop.time()
            self.counts.calls += 1
            done = self._shop.call(now)
            await asyncio.sleep(min(done - now, self._patience_s))
            if done - now <= self._patience_s:
                self.counts.sold += 1
                return True
        return False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to the requests of one connection until it ends."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b" /-/counts " in head.partition(b"\r\n")[0]:
                    status, body = "200 OK", json.dumps(asdict(self.counts)).encode()
                elif await self.buy():
                    status, body = "200 OK", b"sold\n"
                else:
                    status, body = "504 Gateway Timeout", b"the shop did not respond in time\n"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()


async def serve(port: int, gateway: Gateway) -> None:
    """Serve until the process ends."""
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", port, limit=HEAD, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--per-second", type=float, default=80, help="calls that the shop works on")
    parser.add_argument("--queue", type=int, default=120, help="calls that wait at most")
    parser.add_argument("--patience", type=float, default=0.3, help="seconds until a retry")
    parser.add_argument("--retries", type=int, default=3)
    options = parser.parse_args()
    shop = Shop(options.per_second, options.queue)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, Gateway(shop, options.patience, options.retries)))


if __name__ == "__main__":
    main()
