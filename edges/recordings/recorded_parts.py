"""Splits a recorded body of type multipart/form-data into its parts (RFC 7578)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message

MULTIPART = "multipart/form-data"
#: Characters of the header fields of a part.
_HEAD_CHARS = 2000


@dataclass(frozen=True, kw_only=True)
class RecordedPart:
    """A part of a multipart body: a form field, or a file with its name and media type."""

    name: str
    content: str
    #: None for a text of a form.
    filename: str | None
    kind: str


def recorded_parts(body: str) -> list[RecordedPart]:
    """Split a multipart body, as browsers write it, into its parts.

    Raises ValueError if its boundaries, or the name of a part, are missing.
    """
    first = body.partition("\n")[0].rstrip("\r")
    if not first.startswith("--") or len(first) < 3:
        raise ValueError("it does not begin with a boundary")
    pieces = re.split(rf"(?:\A|\r?\n){re.escape(first)}(?=--|\r?\n)", body)
    if len(pieces) < 2 or not pieces[-1].startswith("--"):
        raise ValueError("its last boundary is not there")
    return list(_parts(pieces[1:-1]))


def _parts(pieces: list[str]) -> Iterator[RecordedPart]:
    for piece in pieces:
        head, gap, content = re.sub(r"\A\r?\n", "", piece).replace("\r\n", "\n").partition("\n\n")
        if "\r\n" in piece and gap:
            content = piece[piece.index("\r\n\r\n") + 4 :]
        message = Message()
        for line in head[:_HEAD_CHARS].split("\n"):
            name, _, value = line.partition(":")
            message[name.strip()] = value.strip()
        told = message.get_param("name", None, "content-disposition")
        if not gap or not isinstance(told, str):
            raise ValueError("a part has no name")
        filename = message.get_param("filename", None, "content-disposition")
        yield RecordedPart(
            name=told,
            content=content,
            filename=filename if isinstance(filename, str) else None,
            kind=str(message.get("content-type", "")),
        )
