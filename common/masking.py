"""Mask secrets in output: in URLs, in texts, and values whose names suggest a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
#: A name and its value in a text: as in JSON, in headers, in key=value.
_NAMED_IN_TEXT = re.compile(
    r"""(?ix)
    ((?<![a-z]) [\w-]{0,40}
      (?: passw(?:or)?d | passphrase | secret | token | api[_-]?key | private[_-]?key
        | credentials? | authorization )
      [\w-]{0,40} \\?["']? \s* [:=] \s* )
    (?: (?P<quote>\\?["']) (?: (?!(?P=quote)) . )*  (?P=quote)
      | (?: (?:bearer|basic|digest|negotiate) \s+ )? [^\s,;&()\[\]{}"']+ )
    """
)
#: Cookies to the end of the line: each may be that of a session.
_COOKIES = re.compile(r"(?i)(cookie\\?[\"']?[ \t]*[:=][ \t]*)[^\r\n]+")
#: Tokens that are known by their form: of Keystone, and JSON web tokens.
_TOKEN = re.compile(r"\b(?:gAAAA[\w-]{16,}={0,2}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*)")
#: Shorter values are no secrets, and would hide parts of other words, characters.
_LEAST_SECRET = 4


def mask_url(text: str) -> str:
    """`text` with the user information and secret parameters of URLs in it hidden."""
    return _QUERY_SECRET.sub(rf"\1{MASK}", _USERINFO.sub(f"{MASK}@", text))


def mask_text(text: str) -> str:
    """`text` with secrets hidden in URLs, behind names of secrets, and where their form tells."""
    shown = _COOKIES.sub(rf"\1{MASK}", _TOKEN.sub(MASK, mask_url(text)))
    return _NAMED_IN_TEXT.sub(rf"\1\g<quote>{MASK}\g<quote>", shown)


def secret_values(value: Any, *, secret: bool = False) -> Iterator[str]:
    """The texts within a value whose names suggest a secret; of long ones each line."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from secret_values(inner, secret=secret or names_secret(str(name)))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from secret_values(inner, secret=secret)
    elif secret and isinstance(value, str):
        yield from (line for line in value.splitlines() if len(line.strip()) >= _LEAST_SECRET)


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
