"""Request bodies of several parts, such as forms with files: multipart/form-data (RFC 7578)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from osbench.common.plugin.request_values import as_text

#: Bytes of a file that is made up.
LARGEST = 64 * 1024 * 1024
_KEYS = frozenset({"filename", "content", "base64", "size", "type"})
_CONTENTS = ("content", "base64", "size")


def part_faults(parts: Mapping[Any, Any]) -> Iterator[str]:
    """Yield a message for each problem of the parts of a body, by name; nothing is encoded."""
    for name, given in parts.items():
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, Mapping):
                yield from _file_faults(str(name), one)
            elif not isinstance(one, str | int | float):
                yield f"the part {name!r} is a text, a file ({{filename, ...}}), or a list of them"


def encoded_body(parts: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the encoded body of `parts`, and its media type with a random boundary.

    A value is a text, a file (a mapping), or a list of these. A file is given by content, base64 or
    size (bytes of zeros). Raises ValueError if base64 cannot be decoded or a size is not a number.
    """
    fields: list[Any] = []
    for name, part in parts.items():
        for value in part if isinstance(part, list | tuple) else [part]:
            is_file = isinstance(value, Mapping)
            fields.append((name, _file(name, value) if is_file else as_text(value)))
    # few flows have such bodies
    from urllib3.filepost import encode_multipart_formdata  # noqa: PLC0415 - see above

    return encode_multipart_formdata(fields)


def _file_faults(name: str, file: Mapping[Any, Any]) -> Iterator[str]:
    for key in file:
        if key not in _KEYS:
            yield f"the file {name!r} has no key {key!r}: it has {', '.join(sorted(_KEYS))}"
    if sum(key in file for key in _CONTENTS) != 1:
        yield f"the file {name!r} needs one of content (a text), base64 and size (bytes)"
        return
    size, text = file.get("size"), file.get("base64")
    bounded = isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= LARGEST
    if "size" in file and not bounded:
        yield f"the size of the file {name!r} is a number of bytes up to {LARGEST}, not {size!r}"
    if "content" in file and not isinstance(file["content"], str):
        yield f"the content of the file {name!r} is a text"
    if "base64" in file and "{" not in str(text):
        try:
            _base64_content(str(text))
        except ValueError:
            yield f"base64 of the file {name!r} cannot be decoded"
    for key in ("filename", "type"):
        value = file.get(key, "")
        if not isinstance(value, str) or not value.isprintable():
            yield f"{key} of the file {name!r} is a text in one line"


def _file(name: str, file: Mapping[str, Any]) -> tuple[str, bytes, str]:
    if "base64" in file:
        content = _base64_content(str(file["base64"]))
    elif "size" in file:
        content = _filler(int(file["size"]))
    else:
        content = str(file["content"]).encode()
    return (
        str(file.get("filename", name)),
        content,
        str(file.get("type", "application/octet-stream")),
    )


@lru_cache(64)
def _base64_content(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(
            f"base64 of a file cannot be decoded: {error}; write standard base64 with padding"
        ) from None


@lru_cache(8)
def _filler(size: int) -> bytes:
    return bytes(size)
