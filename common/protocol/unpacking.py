"""Unpacks MessagePack of other programs, with limits on memory, depth and types."""

from __future__ import annotations

from typing import Any

import msgpack

#: What msgpack raises for bytes that are not MessagePack, or are beyond a bound.
UNPACK_ERRORS = (ValueError, TypeError, msgpack.UnpackException, MemoryError, RecursionError)

#: Most levels of lists and maps: `packb` of msgpack supports 511.
DEPTH = 128
#: Most lists and maps in all: an empty one is 1 byte on the wire and 64 in memory.
CONTAINERS = 1_000_000
#: Up to this many bytes nothing is looked at beforehand: lists in lists that announce as many
#: elements as there are bytes take 8 bytes an element, in at most 1,024 levels: 32 MB.
SMALL = 4096
_CONTAINERS = (dict, list)


class _Count:
    """Counts lists and maps as msgpack unpacks them; raises ValueError at more than `most`."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self, container: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ValueError("too many lists and maps")
        return container


def unpack(data: bytes, *, containers: int = CONTAINERS, extensions: bool = False) -> Any:
    """Return the value of one MessagePack. Maps may have keys of any type that can be a key.

    Extension types are refused, unless `extensions` has them returned as `msgpack.ExtType` (a
    timestamp as `msgpack.Timestamp`).

    Raises ValueError if the bytes are anything else, end early, go on behind the value, hold more
    than `containers` lists and maps, or more than `DEPTH` levels of them.
    """
    if len(data) > SMALL:
        _walk(data)
    count = _Count(containers)
    try:
        value = msgpack.unpackb(
            data,
            strict_map_key=False,
            max_ext_len=len(data) if extensions else 0,
            ext_hook=msgpack.ExtType if extensions else _refuse_extension,
            list_hook=count,
            object_hook=count,
        )
    except UNPACK_ERRORS as error:
        raise ValueError(_reason(error)) from None
    # a few cannot be nested more deeply than they are many
    if containers - count.left > DEPTH and _too_deep(value, DEPTH):
        raise ValueError("nested too deeply")
    return value


def unpack_all(data: bytes) -> list[Any]:
    """Return the values of consecutive MessagePacks in order; [] for no bytes.

    Raises ValueError if a value is malformed or beyond the limits of `unpack`.
    """
    walker = msgpack.Unpacker(max_buffer_size=max(1, len(data)))
    walker.feed(data)
    found, at = [], 0
    while at < len(data):
        try:
            walker.skip()
        except UNPACK_ERRORS as error:
            raise ValueError(_reason(error)) from None
        found.append(unpack(data[at : walker.tell()]))
        at = walker.tell()
    return found


def unpack_parts(data: bytes, *, parts: int, text: int) -> list[Any]:
    """Unpack one MessagePack that is a list of at most `parts` scalars; return the list.

    Strings may have at most `text` bytes. No memory is reserved for elements that are only
    announced. Raises ValueError for all other bytes.
    """
    try:
        value = msgpack.unpackb(
            data,
            max_array_len=parts,
            max_map_len=0,
            max_ext_len=0,
            ext_hook=_refuse_extension,
            max_str_len=text,
            list_hook=_Count(1),
        )
    except UNPACK_ERRORS as error:
        raise ValueError(_reason(error)) from None
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value


def _refuse_extension(code: int, _: bytes) -> Any:
    raise ValueError(f"expected no extension types of msgpack, got {code}")


def _walk(data: bytes) -> None:
    """Raise ValueError unless the bytes are exactly one MessagePack; no object is made of them.

    A header may announce 2**32 elements, for which `unpackb` reserves memory before it reads them.
    Bytes that pass have all elements that they announce.
    """
    walker = msgpack.Unpacker(max_buffer_size=max(1, len(data)))
    try:
        walker.feed(data)
        walker.skip()
    except UNPACK_ERRORS as error:
        raise ValueError(_reason(error)) from None
    if walker.tell() != len(data):
        raise ValueError("more than one value")


def _too_deep(value: Any, levels: int) -> bool:
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _CONTAINERS
        ]
    return bool(level)


def _reason(error: BaseException) -> str:
    # texts of msgpack may quote what was unpacked
    return type(error).__name__
