"""A WebSocket server that returns each message, to put load on; see docs/protocols.md.

It knows the part of RFC 6455 that the sample needs: messages of one frame, up to 64 KiB.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import re
import struct

#: By RFC 6455, section 1.3.
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#: Operation codes of frames.
CLOSE, PING, PONG = 8, 9, 10


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a connection until the client closes it."""
    try:
        await accept(reader, writer)
        code = 0
        while code != CLOSE:
            code, payload = await read_frame(reader)
            if code != PONG:
                send_frame(writer, PONG if code == PING else code, payload)
                await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the request that opens a connection, and accept it."""
    head = await reader.readuntil(b"\r\n\r\n")
    key = re.search(rb"^sec-websocket-key: *(\S+)", head, re.I | re.M)
    if key is None:
        writer.write(b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n\r\n")
        raise ConnectionError
    accepted = base64.b64encode(hashlib.sha1(key[1] + GUID).digest())  # noqa: S324 - as the RFC says
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
    )


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the operation code of the next frame, and its content without the client's mask."""
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size > 125:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
    mask = await reader.readexactly(4)
    masked = await reader.readexactly(size)
    return first & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))


def send_frame(writer: asyncio.StreamWriter, code: int, payload: bytes) -> None:
    """Send a message of a single frame."""
    short = len(payload) < 126
    size = bytes([len(payload)]) if short else struct.pack("!BH", 126, len(payload))
    writer.write(bytes([0x80 | code]) + size + payload)


async def main() -> None:
    """Listen at 127.0.0.1 until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    server = await asyncio.start_server(serve, "127.0.0.1", parser.parse_args().port)
    print(f"listening at ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
