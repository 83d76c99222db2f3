"""Addresses at which traces are queried: `tempo` or `jaeger`, `+`, and an HTTP URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from osbench.common.errors import UsageError
from osbench.common.secrets.url_masking import mask_url

TEMPO, JAEGER = "tempo", "jaeger"


def parse_backend_url(url: str) -> tuple[str, str]:
    """Return the kind of a backend (`TEMPO` or `JAEGER`) and its HTTP URL.

    Raises UsageError for another kind or scheme, without a host, or with a query or fragment.
    """
    kind, _, base = url.partition("+")
    try:
        parts = urlsplit(base)
        known = kind in (TEMPO, JAEGER) and parts.scheme in ("http", "https")
        if known and parts.hostname and parts.port != 0 and not parts.query and not parts.fragment:
            return kind, base
    except ValueError:
        pass
    raise UsageError(
        f"{mask_url(url)!r} is not an address to query traces at; write tempo+http://HOST:3200 or "
        "jaeger+http://HOST:16686, or either with https; a path before /api may follow"
    )
