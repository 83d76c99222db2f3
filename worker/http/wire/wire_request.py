"""The interface of a request for drivers, whichever client made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class WireRequest(Protocol):
    """A request as bytes, and the origin (host, port, TLS settings) that it goes to."""

    @property
    def verb(self) -> str:
        """Return the method, in capitals."""

    @property
    def url(self) -> str:
        """Return the URL of this request, not of a redirect that its response leads to."""

    @property
    def host(self) -> str:
        """Return the host name or address that the request goes to."""

    @property
    def port(self) -> int:
        """Return the TCP port that the request goes to."""

    @property
    def secure(self) -> bool:
        """Return whether the request goes over TLS."""

    @property
    def trust(self) -> object:
        """Return the TLS settings, hashable: part of `origin`."""

    @property
    def origin(self) -> tuple[object, ...]:
        """Return the key of idle connections: equal keys mean the same target and TLS settings."""

    @property
    def bodiless(self) -> bool:
        """Return whether responses to the request have no body, as for HEAD."""

    @property
    def last(self) -> bool:
        """Return whether the connection ends after this request (`Connection: close`)."""

    @property
    def repeatable(self) -> bool:
        """Return whether the request may be sent twice, whatever the server did with the first."""

    @property
    def rest(self) -> bytes:
        """Return a body that is too large for `data` and is sent after it; else b""."""

    def data(self, own: Sequence[str]) -> bytes:
        """Return the bytes of head and body, except `rest`, with the header lines `own` added."""
