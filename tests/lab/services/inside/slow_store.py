"""A proxy in front of a server, which holds some requests of its clients up.

Arguments: the port to listen on, the port of the server, the file that says what is slow, and the
name by which it speaks of this proxy.
"""

from __future__ import annotations

import asyncio
import sys

from injected_faults import InjectedFaults


async def serve(port: int, server: int, faults: InjectedFaults) -> None:
    """Pass everything on, both ways, for ever."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", server)
        await asyncio.gather(
            _copy(reader, to_server, faults), _copy(from_server, writer), return_exceptions=True
        )

    async with await asyncio.start_server(pass_on, "127.0.0.1", port) as listening:
        await listening.serve_forever()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, faults: InjectedFaults | None = None
) -> None:
    try:
        while data := await reader.read(65536):
            # a client sends a command, or a pipeline of them, at once
            if faults and (delay_s := faults.delay_s(data.decode("latin-1"))):
                await asyncio.sleep(delay_s)
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    own, other, file, name = sys.argv[1:]
    asyncio.run(serve(int(own), int(other), InjectedFaults(file, name)))
