"""Frames of the Redis protocol (RESP2 and RESP3), cut from a stream of bytes without decoding them.

https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

_LINES = b"+-:_#,("
_BULKS = b"$=!"
#: Frames that hold others, and how many a counted member is.
_AGGREGATES = {b"*"[0]: 1, b"~"[0]: 1, b">"[0]: 1, b"%"[0]: 2}


class NotResp(ValueError):
    """The bytes are no RESP."""


def frame_end(data: bytes | bytearray, start: int = 0) -> int | None:
    """Where the frame that begins at `start` ends; None where it is not all there.

    Raises NotResp.
    """
    stop = data.find(b"\r\n", start)
    if stop < 0:
        return None
    kind, after = data[start], stop + 2
    if kind in _LINES:
        return after
    if kind not in _BULKS and kind not in _AGGREGATES:
        raise NotResp(f"a frame that begins with {bytes(data[start : start + 1])!r}")
    try:
        count = int(data[start + 1 : stop])
    except ValueError:
        raise NotResp("a frame without a length") from None
    if count < 0:
        return after
    if kind in _BULKS:
        return after + count + 2 if len(data) >= after + count + 2 else None
    for _ in range(count * _AGGREGATES[kind]):
        end = frame_end(data, after)
        if end is None:
            return None
        after = end
    return after


class Frames:
    """Cuts what arrives into whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete with these bytes. Raises NotResp."""
        self._data += data
        found = []
        while (end := frame_end(self._data)) is not None:
            found.append(bytes(self._data[:end]))
            del self._data[:end]
        return found

    def rest(self) -> bytes:
        """What is left: the beginning of a frame."""
        return bytes(self._data)


def arguments(command: bytes) -> list[bytes]:
    """The arguments of a command, an array of bulk strings. Raises NotResp."""
    if not command.startswith(b"*"):
        raise NotResp("a command that is no array")
    at = command.index(b"\r\n") + 2
    found = []
    while at < len(command):
        stop = command.index(b"\r\n", at)
        length = int(command[at + 1 : stop])
        found.append(command[stop + 2 : stop + 2 + length])
        at = stop + 4 + length
    return found


def command(*parts: bytes) -> bytes:
    """A command as it is sent."""
    bulks = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"*%d\r\n%b" % (len(parts), bulks)
