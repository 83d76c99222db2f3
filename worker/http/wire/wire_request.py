"""The interface of a request for drivers, however it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class WireRequest(Protocol):
    """A request as bytes, and its origin."""

    @property
    def verb(self) -> str:
        """Return the method, in capitals."""

    @property
    def url(self) -> str:
        """Return the URL of this request, not of a redirect that it leads to."""

    @property
    def host(self) -> str:
        """Return the host name or address of its origin."""

    @property
    def port(self) -> int:
        """Return the TCP port of its origin."""

    @property
    def secure(self) -> bool:
        """Return whether it goes over TLS."""

    @property
    def trust(self) -> object:
        """Return the TLS settings, hashable: part of `origin`."""

    @property
    def origin(self) -> tuple[object, ...]:
        """Return the key of its connections: with one origin, target and trust are the same."""

    @property
    def bodiless(self) -> bool:
        """Return whether responses to it have no body."""

    @property
    def last(self) -> bool:
        """Return whether no other request may follow on its connection; the server is notified."""

    @property
    def repeatable(self) -> bool:
        """Return whether it may be sent twice although the server may have acted on it."""

    @property
    def rest(self) -> bytes:
        """Return the body, if it is sent after `data`."""

    def data(self, own: Sequence[str]) -> bytes:
        """Return the head, with the header lines `own` in it, and the body, but for `rest`."""
