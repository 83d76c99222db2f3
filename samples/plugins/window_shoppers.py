"""A scenario of coroutines: thousands of virtual users in one process, who mostly think."""

from __future__ import annotations

import asyncio
import json

from osbench.plugin import atomic, scenario


class StatusError(Exception):
    """The shop responded with another status than 200."""


class WindowShoppers(scenario.Scenario):
    """Scenarios with the shop of samples/webservice.py."""

    @scenario.configure(name="WindowShoppers.look")
    async def look(self, port: int, host: str = "127.0.0.1", think_s: float = 1.0) -> None:
        """Get the items, count them, and think."""
        with atomic.ActionTimer(self, "shop.list"):
            body = await self._get(host, port, "/items")
        # parsing a large document would keep all other virtual users of the process waiting
        items = await self.run_blocking(json.loads, body)
        self.add_output(
            additive={
                "title": "Items",
                "chart_plugin": "Lines",
                "data": [["items", len(items)]],
            }
        )
        await self.think(think_s)

    async def _get(self, host: str, port: int, path: str) -> bytes:
        """Return the body of a response; opens a connection for each request."""
        reader, writer = await asyncio.open_connection(host, port)
        try:
            headers = {"Host": host, "Connection": "close", **self.trace_headers()}
            lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
            writer.write(f"GET {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split()[1] != b"200":
                raise StatusError(head.split(b"\r\n")[0].decode())
            found: bytes = await reader.read()
            return found
        finally:
            writer.close()
