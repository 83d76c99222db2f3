"""The bytes of a request, prepared once for all requests that are equal but for a few fields."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import osbench
from osbench.worker.http import addresses
from osbench.worker.http.outgoing_request import OURS, OutgoingRequest
from osbench.worker.http.sent_again import IDEMPOTENT

AGENT = f"osbench/{osbench.__version__}"

#: Bodies up to this size, bytes, are sent together with the head.
_TOGETHER = 64 * 1024

_PORTS = {"http": 80, "https": 443}


class PreparedRequest:
    """The bytes of a request, its target and TLS settings; never changed, and shared by threads."""

    __slots__ = (
        "_after",
        "_before",
        "_named",
        "bodiless",
        "host",
        "last",
        "origin",
        "outgoing",
        "port",
        "repeatable",
        "rest",
        "secure",
        "trust",
        "url",
        "verb",
    )

    def __init__(self, outgoing: OutgoingRequest, trust: object = None) -> None:
        """Make the bytes. `trust`: TLS settings, hashable, in `origin` if the request is secure."""
        parts = urlsplit(outgoing.url)
        self.url = outgoing.url
        self.verb = outgoing.verb
        #: For what a redirect makes of it; not to be changed.
        self.outgoing = outgoing
        #: See `WireRequest`.
        self.repeatable = outgoing.verb in IDEMPOTENT
        #: Responses to it have no body.
        self.bodiless = outgoing.verb == "HEAD"
        self._named = outgoing.given & OURS
        self.secure = parts.scheme == "https"
        self.host = addresses.host(outgoing.url)
        self.port = parts.port or _PORTS[parts.scheme]
        self.trust = trust
        #: Where its connections go, and what they trust: connections of one origin are alike.
        self.origin = (self.host, self.port, trust if self.secure else None, self.secure)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._before = f"{self.verb} {target} HTTP/1.1\r\n".encode("ascii")
        host = addresses.without_zone(self.host)
        host = f"[{host}]" if ":" in host else host
        if parts.port not in (None, _PORTS[parts.scheme]):
            host += f":{parts.port}"
        lines = [("Host", host), ("User-Agent", AGENT), ("Accept", "*/*")]
        named = {name.lower() for name, _ in outgoing.fixed}
        lines = [line for line in lines if line[0].lower() not in named]
        lines += [(name, value) for name, value in outgoing.fixed if value is not None]
        body = outgoing.body
        if body is not None:
            lines.append(("Content-Length", str(len(body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
        #: No other may follow on its connection: it says so to the server.
        self.last = ("connection", "close") in ((n.lower(), (v or "").lower()) for n, v in lines)
        together = body is not None and len(body) <= _TOGETHER
        self._after = head.encode("latin-1") + (body if body is not None and together else b"")
        #: The body, if it is sent after `data`.
        self.rest = b"" if body is None or together else body

    def data(self, own: Sequence[str]) -> bytes:
        """Return the bytes of head and body, with the header lines `own` added.

        A body over 64 KiB is left out: it is `rest`. Lines of `own` with names that the task sets
        itself are left out.
        """
        if self._named:
            own = [line for line in own if line.split(":", 1)[0].lower() not in self._named]
        if not own:
            return self._before + self._after
        return b"%b%b\r\n%b" % (self._before, "\r\n".join(own).encode("latin-1"), self._after)
