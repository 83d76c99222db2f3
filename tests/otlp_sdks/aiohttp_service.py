"""An aiohttp service for `opentelemetry-instrument`: 3 % of requests wait for a lock.

aiohttp_service.py PORT lock
"""

from __future__ import annotations

import asyncio
import random
import sys

from aiohttp import web
from opentelemetry import trace

SLOW_S = 0.2
TRACER = trace.get_tracer("items")


async def hold(lock: asyncio.Lock, held: asyncio.Event) -> None:
    async with lock:
        held.set()
        await asyncio.sleep(SLOW_S)


async def item(request: web.Request) -> web.Response:
    lock = asyncio.Lock()
    holder = None
    if random.random() < 0.03:
        held = asyncio.Event()
        holder = asyncio.create_task(hold(lock, held))
        await held.wait()
    with TRACER.start_as_current_span("acquire row lock"):
        await lock.acquire()
    with TRACER.start_as_current_span("update"):
        await asyncio.sleep(0.001)
    if holder is not None:
        await holder
    return web.json_response({"number": int(request.match_info["number"])})


if __name__ == "__main__":
    app = web.Application()
    app.router.add_get("/items/{number}", item)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
