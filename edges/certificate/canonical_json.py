"""The one form in which a certificate is written, so that any changed byte is another certificate.

Objects have their keys in order of code points, an indent of one space, only ASCII, and numbers as
Python's `repr` writes them. The form is osbench's own: it keeps integers of any length apart from
floats, which RFC 8785 does not.
"""

from __future__ import annotations

import json
from typing import Any

from osbench.common.files.foreign_json import read_json

#: Most levels of lists and objects, and values, of a document.
DEPTH, VALUES = 100, 3_000_000


def canonical(document: Any) -> bytes:
    """Return the canonical form of JSON values, with a newline at its end.

    Raises ValueError for NaN, infinity and keys that are not strings.
    """
    if not _has_text_keys(document):
        raise ValueError("a key of an object is not a string")
    text = json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return text.encode("ascii") + b"\n"


def parse_canonical(content: bytes) -> Any:
    """Return the JSON values of a canonical document.

    Raises ValueError with the reason if it is not JSON, is not in canonical form, as with a key
    that is there twice, or has more than `DEPTH` levels or `VALUES` values.
    """
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError:
        raise ValueError("it has bytes that are not ASCII") from None
    # the encoder descends in Python, and must not meet more
    if _depth(text) > DEPTH:
        raise ValueError("it is nested too deeply")
    document = read_json(text, VALUES)
    if canonical(document) != content:
        raise ValueError("it is not in the form in which osbench writes certificates")
    return document


def _depth(text: str) -> int:
    """Return the deepest level of brackets; brackets in strings count as well."""
    depth = deepest = 0
    for sign in text:
        if sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


def _has_text_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_text_keys(one) for key, one in value.items())
    return not isinstance(value, list) or all(map(_has_text_keys, value))
