"""Ends asyncio servers of tests with all of their connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


async def end_streams(server: asyncio.Server, writers: Iterable[asyncio.StreamWriter]) -> None:
    """Close a server, cancel all other tasks of the loop, and abort its connections.

    `writers`: of open connections; read when no further one is made.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    # an accepted connection is made, and its callback called, within three steps of the loop: a
    # server that was closed before would leave its socket open
    for _ in range(3):
        await asyncio.sleep(0)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for writer in writers:
        writer.transport.abort()
    # sockets are closed in the next step
    await asyncio.sleep(0)
    server.close()
