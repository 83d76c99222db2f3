"""What an attacker may send for a document: random bytes, and valid ones changed a little."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

#: Values that a program rarely expects, in MessagePack and mostly in JSON.
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**62,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    1.5,
    float("inf"),
    float("nan"),
    "",
    "x",
    "\x1b[31m",
    "\ud7ff" * 40,
    "9" * 400,
    b"",
    b"\xff",
    bytes(8),
    bytes(40),
    b"\x1b" * 17,
    [],
    [[]],
    [1, 2],
    {},
    {"rows": 1},
    [{"kind": "additive"}],
]

values = st.recursive(
    st.sampled_from(ODD) | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """`valid` with some bits flipped, cut, lengthened or with parts repeated; or anything."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["flip", "set", "cut", "add", "repeat", "any"])):
            case "flip" if data:
                bit = draw(st.integers(0, len(data) * 8 - 1))
                data[bit // 8] ^= 1 << bit % 8
            case "set" if data:
                # lengths and headers of formats that announce what follows
                at = draw(st.integers(0, len(data) - 1))
                size = draw(st.sampled_from([1, 4, 8]))
                data[at : at + size] = draw(st.sampled_from([b"\xff", b"\x00", b"\x7f"])) * size
            case "cut":
                del data[draw(st.integers(0, len(data))) :]
            case "add":
                data += draw(st.binary(min_size=1, max_size=9))
            case "repeat" if data:
                begin = draw(st.integers(0, len(data) - 1))
                end = draw(st.integers(begin, len(data)))
                data[begin:begin] = data[begin:end]
            case _:
                return draw(st.binary(max_size=60))
    return bytes(data)


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """A document of lists, maps and scalars in which one to three places have another value."""
    found = document
    for _ in range(draw(st.integers(1, 3))):
        paths = list(_paths(found, ()))
        path = draw(st.sampled_from(paths)) if paths else ()
        how = draw(st.sampled_from(["set", "set", "set", "drop", "twice"]))
        found = _replaced(found, path, how, draw(values))
    return found


def _paths(document: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(document, dict):
        items: Any = document.items()
    elif isinstance(document, (list, tuple)):
        items = enumerate(document)
    else:
        return
    for key, inner in items:
        yield (*above, key)
        yield from _paths(inner, (*above, key))


def _replaced(document: Any, path: tuple[Any, ...], how: str, value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    if len(path) > 1:
        copy[path[0]] = _replaced(copy[path[0]], path[1:], how, value)
    elif how == "drop":
        del copy[path[0]]
    elif how == "twice" and isinstance(copy, list):
        copy.append(copy[path[0]])
    else:
        copy[path[0]] = value
    return copy


@contextlib.contextmanager
def bounded(bytes_: int = 32 << 20, seconds: float = 20.0) -> Iterator[None]:
    """Fail where what is done inside takes more memory at a time, or more of the processor."""
    tracemalloc.start()
    begun = time.process_time()
    try:
        yield
    finally:
        took = time.process_time() - begun
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak <= bytes_, f"{peak} bytes at a time"
    assert took <= seconds, f"{took} s of the processor"


def refuses(action: Callable[[], object], *errors: type[Exception]) -> bool:
    """Whether one of the documented errors came; any other goes through."""
    try:
        action()
    except errors:
        return True
    return False
