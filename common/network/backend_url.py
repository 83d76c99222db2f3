"""Addresses at which traces are queried: `tempo` or `jaeger`, `+`, and an HTTP URL."""

from __future__ import annotations

from osbench.common.errors import UsageError
from osbench.common.network.server_address import HTTP, server_address_fault
from osbench.common.secrets.url_masking import mask_url

TEMPO, JAEGER = "tempo", "jaeger"


def parse_backend_url(url: str) -> tuple[str, str]:
    """Return the kind of a backend (`TEMPO` or `JAEGER`) and its HTTP URL.

    Raises UsageError for another kind, a malformed address, or one with a query.
    """
    kind, _, base = url.partition("+")
    fault = server_address_fault(base, HTTP)
    if kind in (TEMPO, JAEGER) and not fault and "?" not in base:
        return kind, base
    raise UsageError(
        f"{mask_url(url)!r} is not an address to query traces at"
        f"{f': it {fault}' if fault else ''}; write tempo+http://HOST:3200 or "
        "jaeger+http://HOST:16686, or either with https; a path before /api may follow"
    )
