"""Text from bytes of an unknown sender."""

from __future__ import annotations


def text_of(data: bytes) -> str:
    """Bytes as text, whatever they are: those that are not UTF-8 come out as \\xNN."""
    return data.decode(errors="backslashreplace")
