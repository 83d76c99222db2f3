"""What can go wrong between a request and its answer."""

from __future__ import annotations


class BadAnswer(ConnectionError):
    """What was received is not an HTTP/1.1 answer, or one that can be read in two ways."""

    #: Whether the head of the answer had come, as in the classes below.
    in_body = False


class DifferentLengths(BadAnswer):
    """The answer has more than one Content-Length, and they differ."""


class TooLongAnswer(BadAnswer):
    """The answer has more bytes than its request allows."""


class EarlyEnd(ConnectionError):
    """The connection ended before the answer did."""

    in_body = False


class CannotConnect(ConnectionError):
    """The host has no address, or no address of it takes connections."""


class CannotSecure(ConnectionError):
    """TLS did not come about: its certificate, or its protocol."""


class ConnectTimedOut(TimeoutError):
    """Name lookup, connection and TLS took longer than the request may wait for them."""

    #: Whether there was a connection, and only TLS was missing.
    connected = False


class ReceiveTimedOut(TimeoutError):
    """The request was not taken, or not answered, within its limits."""

    in_body = False
