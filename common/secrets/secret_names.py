"""Decides whether a value is a secret: by its name, by its place, and by its form.

One table for all of osbench: values to mask, values that a recording replaces by arguments, and
header fields that stay behind on a redirect to another host.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

#: Replaces a secret.
MASK = "***"


class Place(Enum):
    """The place in which a name stands: the same name may be secret in one and not in another."""

    #: JSON, YAML, arguments, and header fields.
    FIELD = auto()
    #: The query of a URL, and forms.
    QUERY = auto()
    #: A cookie: each may be that of a session.
    COOKIE = auto()
    #: A text that nothing structures, such as a log line.
    TEXT = auto()


class _Kind(Enum):
    """Meaning of a name for its value: plain, secret, or secret under a condition."""

    PLAIN = auto()
    SECRET = auto()
    #: In the plural: `max_tokens: 100` is a count, `tokens: [...]` are secrets.
    SEVERAL = auto()
    #: A short word on its own, that prose and logs use for other things: `key: 3 of 5`.
    SHORT = auto()
    #: The same, and a mapping under it is a section whose names say more: `auth: {method: ...}`.
    SECTION = auto()
    #: Secret among other parameters of a login only.
    LOGIN = auto()


#: Parts of a word that make it a secret: `adminpassword`, `clientsecret`, `apikey`.
_ROOT = re.compile(
    r"passw|pass(?:phrase|code)|secret(?!ar)|token(?!i[sz])|credential|apikey|accountkey|accesskey"
    r"|authkey|privatekey|sshkey|signingkey|masterkey|signature|authorization|sess(?:ion)?id|userdata|cardnumber|samlresponse"
    r"|[a-z]pwd"
)
#: Whole words that make a name a secret wherever they stand in it.
_WHOLE = frozenset(
    {"pwd", "pw", "otp", "totp", "cvv", "cvc", "jwt", "bearer", "cookie", "cookies", "dpop"}
    | {"mnemonic", "kubeconfig", "assertion", "csrf", "xsrf", "hmac"}
)
#: Pairs of words that do.
_PAIRS = frozenset(
    {
        ("session", "id"),
        ("user", "data"),
        ("card", "number"),
        ("saml", "response"),
        ("pass", "code"),
    }
    | {("pass", "word"), ("pass", "phrase"), ("code", "verifier"), ("device", "code")}
    | {("auth", "code"), ("authorization", "code"), ("verification", "code")}
)
#: Secret as the last word: `ssh_key`, `adminPass`, `X-Amz-Sig`; short words on their own.
_LAST = frozenset({"key", "keys", "pass", "sig", "sid", "pin"})
#: Of a key, words before it that make it a secret wherever it stands: `private_key_pem`.
_KEY_OF = frozenset(
    {"api", "private", "secret", "access", "signing", "encryption", "master", "account", "shared"}
    | {"auth", "subscription", "hmac", "deploy", "license", "client"}
)
#: Words that make it not a secret.
_OPEN_KEY = frozenset(
    {"public", "sort", "primary", "foreign", "partition", "cache", "routing", "group", "row"}
    | {"idempotency", "surrogate", "lookup", "shard", "unknown", "missing", "required", "valid"}
    | {"unique", "natural", "composite", "candidate"}
)
#: Words behind a secret that make it a word about one: `token_count`, `key_name`, `secret_ref`.
_ABOUT = frozenset(
    {"count", "counts", "type", "types", "kind", "kinds", "name", "names", "file", "files", "limit"}
    | {"filename", "path", "paths", "dir", "directory", "folder", "url", "urls", "uri", "href"}
    | {"endpoint", "expiry", "expires", "expired", "expiration", "expire", "ttl", "length", "len"}
    | {"size", "max", "min", "quota", "policy", "algorithm", "alg", "version", "format", "age"}
    | {"lifetime", "method", "methods", "field", "fields", "header", "headers", "enabled"}
    | {"required", "valid", "usage", "ref", "refs", "link", "links", "budget", "rate", "per"}
    # exceptions: `SignatureDoesNotMatch: the request signature ...`
    | {"error", "errors", "exception", "warning", "mismatch", "missing", "invalid", "not", "found"}
)
#: An id of these is a name, and that of a token is the token.
_IDS = frozenset({"key", "keys", "credential", "credentials", "apikey", "accesskey"})
#: Names on their own.
_SECTIONS = frozenset({"auth", "session", "signature"})
_LOGIN = frozenset({"code", "state", "nonce", "ticket"})
#: Names of this product that hold paths.
_PATHS = frozenset({"https_key"})
#: Parameters that occur next to an authorization code (RFC 6749, OpenID Connect).
_LOGIN_PARAMETERS = frozenset(
    {"state", "grant_type", "redirect_uri", "client_id", "client_secret", "code_verifier"}
    | {"session_state", "iss", "id_token", "response_type", "code_challenge"}
)
#: An option that occurs next to an authorization code in keystoneauth1's auth plug-ins.
_FEDERATED = "identity_provider"
_LOGIN_PATH = re.compile(
    r"(?i)(?<![a-z])(?:oauth2?|oidc|openid|sso|saml|callback|authori[sz]e|token|signin|login|verify"
    r"|reset|activate|confirm|cas)(?![a-z])"
)
#: Segments of a path that a secret follows, by their words.
_BEFORE_SECRET = frozenset(
    {
        "reset",
        "recover",
        "recovery",
        "verify",
        "verification",
        "confirm",
        "confirmation",
        "activate",
    }
    | {"activation", "invite", "invites", "invitation", "invitations", "magic", "unsubscribe"}
    | {"token", "tokens", "otp"}
)
#: Finds one of them in a text, so that others are not taken to pieces.
SECRET_PATH = re.compile(f"(?i){'|'.join(sorted(_BEFORE_SECRET))}")
#: Segments between the word and its secret, such as a user's number, at most.
_SEGMENTS = 2
_RANDOM = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w~=%+-]{16,}|[A-Za-z_~=%+-]{32,}")

#: Words of a name: split at capitals, digits, and all that is not a letter.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
#: Characters of a name that are looked at, its last.
_NAME_CHARS = 200
#: A number, also with a unit, as of a duration.
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?\s?(?:%|[a-z]{0,2})")

#: Secrets that are known by their form: tokens of Keystone, JSON web tokens, private keys, tokens
#: with the prefix of who gives them, and what follows the scheme of a header. None is shorter than
#: `FORM_CHARS`.
FORM_CHARS = 12
FORMS = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    r"|\b(?:gAAAA[\w-]{16,}+={0,2}|eyJ[\w-]{8,}+\.[\w-]*+\.[\w-]*+(?:\.[\w-]*+){0,2}"
    r"|gh[oprsu]_\w{16,}+|github_pat_\w{16,}+|glpat-[\w-]{16,}+|xox[abeoprs]-[\w-]{10,}+"
    r"|hv[bs]\.[\w-]{16,}+|[rs]k_(?:live|test)_\w{10,}+|AIza[\w-]{30,}+)"
    r"|(?<=\b(?i:bearer)\s)\s{0,3}(?=[\w.~+/-]{0,60}[\d=])[\w.~+/-]{8,}+=*"
    r"|(?<=\bBasic\s)\s{0,3}(?=[\w+/]{0,60}[\d=])[\w+/]{8,}+=*",
    re.DOTALL,
)


def is_secret(
    name: str, value: Any = "", place: Place = Place.FIELD, beside: Collection[str] = frozenset()
) -> bool:
    """Return whether a value under a name may be a secret.

    `beside`: all names of the same query or form, as of `names_beside`. None, True and False are
    not secrets; the value "" leaves the name to decide.
    """
    if value is None or isinstance(value, bool):
        return False
    kind = _kind_of(name if len(name) <= _NAME_CHARS else name[-_NAME_CHARS:])
    match kind:
        case _ if place is Place.COOKIE:
            found = True
        case _Kind.SECRET:
            found = not _is_login(value)
        case _Kind.SEVERAL:
            found = not _counts(value)
        case _Kind.SHORT:
            found = place is not Place.TEXT and not (name.lower() == "keys" and _counts(value))
        case _Kind.SECTION:
            found = place is not Place.TEXT and not _is_section(value)
        case _Kind.LOGIN:
            federated = name.lower() == "code" and _FEDERATED in beside
            found = federated or (place is Place.QUERY and _beside_login(name.lower(), beside))
        case _:
            found = False
    return found


def names_beside(names: Iterable[str], path: str = "") -> frozenset[str]:
    """Return the names of one query or form in lower case, for `beside` of `is_secret`.

    A `path` like a login, such as `/oauth/callback`, adds "state": `code` is secret then.
    """
    return frozenset({*map(str.lower, names), *(["state"] if _LOGIN_PATH.search(path) else ())})


def secret_segments(segments: Collection[str]) -> list[bool]:
    """Return whether each segment of a path is secret, in order, as in `/reset/9f8e7d6c5b4a3928`.

    Secret is a random-looking segment at most two after a word such as reset or invite.
    """
    found, left = [], 0
    for segment in segments:
        secret = bool(left) and bool(_RANDOM.fullmatch(segment))
        left = max(0, left - 1)
        found.append(secret)
        if not secret and not _BEFORE_SECRET.isdisjoint(_words(segment[:60])):
            left = _SEGMENTS
    return found


@lru_cache(maxsize=4096)
def _kind_of(name: str) -> _Kind:
    if name in _PATHS:
        return _Kind.PLAIN
    if "%" in name:
        name = unquote(unquote(name))
    words = _words(name)
    alone = words[0] if len(words) == 1 else ""
    if alone in _SECTIONS:
        return _Kind.SECTION
    if alone in _LAST:
        return _Kind.SHORT
    if alone in _LOGIN:
        return _Kind.LOGIN
    # capitals are not word boundaries in DPoP
    return _Kind.SECRET if "".join(words) in _WHOLE else _kind_of_words(words)


def _kind_of_words(words: list[str]) -> _Kind:
    at = max((n for n in range(len(words)) if _begins_secret(words, n)), default=None)
    if at is None:
        return _Kind.PLAIN
    word, behind = words[at], words[at + 1 :]
    if not _ABOUT.isdisjoint(behind) or (behind == ["id"] and word in _IDS):
        return _Kind.PLAIN
    several = word.endswith("s") and not word.endswith("pass")
    return _Kind.SEVERAL if several else _Kind.SECRET


def _words(name: str) -> list[str]:
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
    return [word.lower() for word in _WORD.findall(name)]


def _begins_secret(words: list[str], at: int) -> bool:
    word = words[at]
    before = words[at - 1] if at else ""
    if word in _WHOLE or _ROOT.search(word) or (word, *words[at + 1 : at + 2]) in _PAIRS:
        return True
    if word in ("key", "keys"):
        last = at == len(words) - 1 and before not in _OPEN_KEY
        return last or before in _KEY_OF
    if word.endswith("pass") and word not in ("pass", "bypass", "compass", "trespass", "surpass"):
        return True
    return at == len(words) - 1 and word in _LAST


def _beside_login(name: str, beside: Collection[str]) -> bool:
    if name == "state" and "code" in beside:
        return True
    return any(one in beside for one in _LOGIN_PARAMETERS if one != name)


def _is_login(value: Any) -> bool:
    """Return whether `value` is Keystone's login object, `password: {user: ...}`: no secret."""
    return isinstance(value, Mapping) and value.keys() == {"user"}


def _is_section(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_section, value))
    return isinstance(value, Mapping)


def _counts(value: Any) -> bool:
    """Return whether `value` is a number or its text, or a non-empty list of these: no secret."""
    if isinstance(value, list | tuple):
        return bool(value) and all(_counts(one) for one in value)
    if isinstance(value, str):
        return bool(_NUMBER.fullmatch(value))
    return isinstance(value, int | float)
