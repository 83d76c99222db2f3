"""Errors of an HTTP exchange: of connecting, sending and receiving."""

from __future__ import annotations


class BadResponse(ConnectionError):
    """The bytes are not an HTTP/1.1 response, are ambiguous, or do not match their codings."""

    #: Whether the head of the response had arrived, as in the classes below.
    in_body = False
    #: Ends messages to users.
    remedy = "; look at that server, or at a proxy before it"


class DifferentLengths(BadResponse):
    """The response has more than one Content-Length, and they differ."""


class TooLongResponse(BadResponse):
    """The response has more bytes, as sent or decoded, than its bound allows."""

    remedy = ""


class EarlyEnd(ConnectionError):
    """The connection ended before the response did."""

    in_body = False


class CannotConnect(ConnectionError):
    """The host has no address, or no address of it takes connections."""


class CannotSecure(ConnectionError):
    """TLS failed: its certificate, its protocol, or a file of its settings."""


class ConnectTimedOut(TimeoutError):
    """Name lookup, connecting or TLS did not end within the time limits of the request."""

    #: Whether there was a connection, and only TLS was missing.
    connected = False


class ReceiveTimedOut(TimeoutError):
    """The request was not taken, or got no complete response, within its time limits."""

    in_body = False
