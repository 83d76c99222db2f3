"""Signs requests to services with the protocol of S3: AWS Signature Version 4, in a header.

The IAM User Guide lists the steps ("Create a signed AWS API request"). For S3 a path is encoded
once and never normalised.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

#: Stands for the digest of a body that is sent without one.
UNSIGNED = "UNSIGNED-PAYLOAD"
#: The digest of an empty body.
EMPTY = hashlib.sha256(b"").hexdigest()
#: Headers that proxies may change; they are not signed.
_UNSIGNED_HEADERS = frozenset(
    {"connection", "content-length", "expect", "transfer-encoding", "user-agent"}
)
_ALGORITHM = "AWS4-HMAC-SHA256"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """An access key with its secret, and the region and service that signatures name."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"
    service: str = "s3"


def encoded_path(path: str) -> str:
    """Return a path with all but unreserved characters and slashes as %XX, of its UTF-8."""
    return quote(path, safe="/-_.~")


def encoded_query(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the query of a URL: pairs of names and values, encoded as for signing."""
    return "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs
    )


def signed_headers(
    key: SigningKey,
    method: str,
    url: str,
    headers: Mapping[str, str],
    *,
    digest: str,
    now: datetime | None = None,
) -> dict[str, str]:
    """Return a copy of `headers` with Authorization, date and digest; `url` is encoded already.

    `digest`: SHA-256 of the body in hexadecimal digits, or `UNSIGNED`. `now`: a time with its zone;
    None is the present.
    """
    stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    sent = {**headers, "X-Amz-Date": stamp, "X-Amz-Content-SHA256": digest}
    named = {name.lower(): " ".join(value.split()) for name, value in sent.items()}
    named.setdefault("host", host_of(url))
    signed = sorted(name for name in named if name not in _UNSIGNED_HEADERS)
    parts = urlsplit(url)
    request = "\n".join(
        (
            method.upper(),
            parts.path or "/",
            _canonical_query(parts.query),
            *(f"{name}:{named[name]}" for name in signed),
            "",
            ";".join(signed),
            digest,
        )
    )
    scope = f"{stamp[:8]}/{key.region}/{key.service}/aws4_request"
    text = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    derived = _derived_key(key.secret_key, stamp[:8], key.region, key.service)
    sent["Authorization"] = (
        f"{_ALGORITHM} Credential={key.access_key}/{scope}, SignedHeaders={';'.join(signed)}, "
        f"Signature={hmac.digest(derived, text.encode(), 'sha256').hex()}"
    )
    return sent


def host_of(url: str) -> str:
    """Return the header Host of a URL: in small letters, without the usual port of its scheme."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    usual = parts.port is None or parts.port == _PORTS.get(parts.scheme)
    return named if usual else f"{named}:{parts.port}"


def _canonical_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join(f"{name}={value}" for name, _, value in sorted(pairs))


@functools.lru_cache(256)
def _derived_key(secret: str, day: str, region: str, service: str) -> bytes:
    found = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        found = hmac.digest(found, part.encode(), "sha256")
    return found
