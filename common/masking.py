"""Mask secrets in output: passwords in URLs, and values whose names suggest a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Replaces a secret.
MASK = "***"

_USERINFO = re.compile(r"(?<=://)\S*@")
_QUERY_SECRET = re.compile(
    r"(?i)([?&][^=&\s]*(?:pass|secret|token|key|credential|signature|(?<![a-z])sig(?![a-z]))"
    r"[^=&\s]*=)[^&\s]*"
)
_SECRET_NAME = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|(^|[^a-z])keys?|apikey|credentials?)$"
)


def mask_url(text: str) -> str:
    """`text` with the user information and secret parameters of URLs in it hidden."""
    return _QUERY_SECRET.sub(rf"\1{MASK}", _USERINFO.sub(f"{MASK}@", text))


def names_secret(name: str) -> bool:
    """Whether a value under this name may be a secret."""
    return name != "https_key" and bool(_SECRET_NAME.search(name))


def mask(value: Any) -> Any:
    """A copy of a JSON value in which secrets, by name or within URLs, are hidden."""
    if isinstance(value, Mapping):
        return {
            name: MASK if inner and names_secret(str(name)) else mask(inner)
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mask(inner) for inner in value]
    return mask_url(value) if isinstance(value, str) else value
