"""Origins of URLs, and the headers that a redirect to another origin must not have."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from osbench.common.secrets.secret_names import is_secret

_PORTS = {"http": 80, "https": 443}


def is_http(text: str) -> bool:
    """Return whether a text is an http or https URL; a scheme may have capitals (RFC 3986, 3.1)."""
    return text[:8].lower().startswith(("http://", "https://"))


def origin(url: str) -> str:
    """Return "scheme://host:port" of a URL in lower case; without a port the scheme's default.

    Raises ValueError if the URL has an invalid port or host.
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _PORTS.get(parts.scheme, 0)}"


def origin_changes(old: str, new: str) -> bool:
    """Return whether `new` has another origin than `old`, so that secret headers must be dropped.

    True also if a URL is invalid; False for an upgrade from http to https on the default ports.
    """
    try:
        before, after = origin(old), origin(new)
    except ValueError:
        return True
    upgraded = before.startswith("http://") and before.endswith(":80")
    return before != after and not (upgraded and after == f"https{before[4:-2]}443")


def secret_headers(names: Iterable[str]) -> list[str]:
    """Return the header names with secret values among `names`, such as Authorization, in order."""
    return [name for name in names if is_secret(str(name))]
