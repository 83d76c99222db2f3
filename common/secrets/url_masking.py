"""Masks secrets in URLs within a text, and secrets that are known by their form."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

from osbench.common.secrets.secret_names import (
    FORM_CHARS,
    FORMS,
    MASK,
    SECRET_PATH,
    Place,
    is_secret,
    names_beside,
    secret_segments,
)

_AFTER_SCHEME = re.compile(r"(?<=://)\S+")
#: A query, a fragment, or a form that is the whole text.
_QUERY = re.compile(r'(?:^(?=\S*&\S*\Z)|(?<=[?#&;]))(?:[^\s?#"<>]|"(?![\s,:;}\])]|$))+')
_PAIR_END = re.compile(r"([&;](?:amp;)?(?=[^&;=\s]{0,120}=))")
_PATH = re.compile(r"""(?:/[^\s/?#"'<>]++)+""")
#: What ends a sentence or a bracket, and no secret.
CLOSING = "\\\"'<>)]},.:;"
#: How often what a parameter holds may be escaped.
_ESCAPES = 3
#: Characters before a query in which its path is looked for.
_PATH_CHARS = 120


def mask_url(text: str) -> str:
    """Return `text` with `***` for secrets in its URLs, and for secrets known by their form."""
    return _masked_text(text, _shown_query)


def without_credentials(url: str) -> str:
    """Return a URL without user, password, and secret parameters of the query.

    "" if it has no scheme, or if a secret would remain.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return ""
    # a password may hold any character
    place, _, query = rest.rpartition("@")[2].partition("?")
    names = [one.partition("=")[0] for one in query.split("&")]
    beside = names_beside(map(unquote_plus, names), place)
    kept = "&".join(
        pair
        for pair, name in zip(query.split("&"), names, strict=True)
        if pair and not is_secret(unquote_plus(name), pair, Place.QUERY, beside)
    )
    found = f"{scheme}://{place}?{kept}" if kept else f"{scheme}://{place}"
    return found if mask_url(found) == found else ""


def _masked_text(text: str, shown_query: Callable[[re.Match[str]], str]) -> str:
    if "://" in text:
        text = _AFTER_SCHEME.sub(_without_user, text)
    if "=" in text:
        text = _QUERY.sub(shown_query, text)
    if "/" in text and SECRET_PATH.search(text):
        text = _PATH.sub(_shown_path, text)
    return FORMS.sub(MASK, text) if len(text) >= FORM_CHARS else text


def _without_user(found: re.Match[str]) -> str:
    _, at, rest = found[0].rpartition("@")
    return f"{MASK}@{rest}" if at else found[0]


def _shown_query(found: re.Match[str]) -> str:
    return _with_masked_pairs(found, _holds_url)


def _with_masked_pairs(found: re.Match[str], holds_secret: Callable[[str], bool]) -> str:
    query = found[0]
    if "=" not in query:
        return query
    pieces = _PAIR_END.split(query)
    names = [unquote_plus(piece.partition("=")[0]) for piece in pieces[::2]]
    begin = found.start()
    path = found.string[max(0, begin - _PATH_CHARS) : begin].rpartition(" ")[2]
    beside = names_beside(names, path)
    for at, name in enumerate(names):
        before, is_pair, value = pieces[2 * at].partition("=")
        named = is_pair and value and is_secret(name, value, Place.QUERY, beside)
        if named or ("%" in value and holds_secret(value)):
            closing = _closing(value) if 2 * at == len(pieces) - 1 else ""
            pieces[2 * at] = f"{before}={MASK}{closing}"
    return "".join(pieces)


def _holds_url(value: str) -> bool:
    """Return whether a parameter's value is an escaped URL with a secret: `https%3A%2F%2F...`.

    Decodes it up to three times.
    """
    for _ in range(_ESCAPES):
        plain = unquote_plus(value)
        if plain == value:
            break
        value = plain
        if _masked_text(value, _shown_plain_query) != value:
            return True
    return False


def _shown_plain_query(found: re.Match[str]) -> str:
    return _with_masked_pairs(found, lambda _: False)


def _shown_path(found: re.Match[str]) -> str:
    segments = found[0].split("/")
    secret = secret_segments([segment.rstrip(CLOSING) for segment in segments])
    if not any(secret):
        return found[0]
    pairs = zip(segments, secret, strict=True)
    return "/".join(MASK + _closing(one) if hidden else one for one, hidden in pairs)


def _closing(text: str) -> str:
    return text[len(text.rstrip(CLOSING)) :]
