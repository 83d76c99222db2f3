"""Escapes foreign text: characters that could steer a terminal, and bytes that are not text.

Names of workers, marks in Redis and messages of scenarios are written by others. A terminal would
obey control characters in them, and marks of direction would reorder the text.
"""

from __future__ import annotations

import re

#: C0 and C1 controls but for tab and newline, DEL, marks of direction, line and paragraph
#: separators, invisible tags, and lone surrogates, which no terminal can be sent.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_BREAKS = re.compile("[\t\n]")

#: What an empty name is shown as.
NAMELESS = "(no name)"


def escaped(text: str, *, breaks: bool = False) -> str:
    """Return `text` with escapes, such as \\x1b, for characters that could steer a terminal.

    Tabs and newlines are escaped, too, unless `breaks` is true.
    """
    shown = _STEERING.sub(_code, text)
    return shown if breaks else _BREAKS.sub(_code, shown)


def one_line(text: str) -> str:
    """Return a reason of several lines as one line, with escapes as `escaped`."""
    return escaped(" ".join(text.split()))


def on_page(value: object) -> object:
    """Return a template's value with a string escaped, except tabs and newlines; others unchanged.

    Subclasses of str, such as safe markup, are not escaped.
    """
    return escaped(value, breaks=True) if type(value) is str else value


def escaped_in_json(packed: str) -> str:
    """Return JSON text in which characters that could steer a terminal are JSON escapes.

    `packed` was written with ensure_ascii=False. Controls below 0x20 are escaped in JSON anyway.
    """
    return _STEERING.sub(lambda found: "\\" + _code(found), packed)


def decoded_text(data: bytes) -> str:
    """Return bytes decoded as UTF-8; each invalid byte becomes \\xNN. Never raises."""
    return data.decode(errors="backslashreplace")


def name_of(name: object, limit: int) -> str:
    """Return a name given by a scenario as escaped text of one line, at most `limit` characters.

    Bytes are decoded, other types converted by `str`. Never raises: if `str` fails, the text names
    the exception's type. An empty name becomes NAMELESS.
    """
    if isinstance(name, str):
        # of an enumeration its value, which `str` may not return
        text = str.__str__(name[:limit])
    elif isinstance(name, bytes | bytearray):
        text = decoded_text(bytes(name[:limit]))
    else:
        try:
            text = str(name)[:limit]
        except Exception as broken:  # noqa: BLE001 - methods of a scenario's object may raise
            text = f"(a name that cannot be formed: {type(broken).__name__})"
    return escaped(text)[:limit] or NAMELESS


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
