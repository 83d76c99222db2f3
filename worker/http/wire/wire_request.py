"""What drivers need to know of a request, however it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class WireRequest(Protocol):
    """A request as bytes, and where it goes."""

    @property
    def verb(self) -> str:
        """The method, in capitals."""

    @property
    def url(self) -> str:
        """Where it goes."""

    @property
    def host(self) -> str:
        """The host name or address of its origin."""

    @property
    def port(self) -> int:
        """The TCP port of its origin."""

    @property
    def secure(self) -> bool:
        """Whether it goes over TLS."""

    @property
    def trust(self) -> object:
        """What TLS is to check, hashable: part of `origin`."""

    @property
    def origin(self) -> tuple[object, ...]:
        """Where its connections go, and what they trust: connections of one origin are alike."""

    @property
    def bodiless(self) -> bool:
        """Whether no answer to it has a body."""

    @property
    def last(self) -> bool:
        """Whether no other may follow on its connection: it says so to the server."""

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent a second time although the server may have acted on the first."""

    @property
    def rest(self) -> bytes:
        """The body, where it is sent after `data`."""

    def data(self, own: Sequence[str]) -> bytes:
        """The head, with the header lines `own` in it, and the body, but for `rest`."""
