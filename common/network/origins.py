"""Origins of URLs, and the headers that stay at theirs when a request is redirected."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from osbench.common.secrets.secret_names import is_secret

_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> str:
    """Return `scheme://host:port` of a URL, in lower case; without a port the scheme's."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _PORTS.get(parts.scheme, 0)}"


def origin_changes(old: str, new: str) -> bool:
    """Return whether secrets for `old` must not go to `new`; an upgrade to TLS does not count.

    Also if `new` is not a URL that can be read.
    """
    try:
        before, after = origin(old), origin(new)
    except ValueError:
        return True
    upgraded = before.startswith("http://") and before.endswith(":80")
    return before != after and not (upgraded and after == f"https{before[4:-2]}443")


def secret_headers(names: Iterable[str]) -> list[str]:
    """Return names of headers that a redirect to another origin must not take along."""
    return [name for name in names if is_secret(str(name))]
