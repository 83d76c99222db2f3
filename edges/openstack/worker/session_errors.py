"""Converts errors of osbench's HTTP client to the exceptions that `requests` would raise."""

from __future__ import annotations

import ssl

from requests import exceptions
from requests.models import PreparedRequest

from osbench.worker.http.wire.wire_errors import (
    BadResponse,
    CannotConnect,
    CannotSecure,
    ConnectTimedOut,
    DifferentLengths,
    EarlyEnd,
    ReceiveTimedOut,
    TooLongResponse,
)

#: What an exchange raises.
WIRE_ERRORS = (BadResponse, CannotConnect, CannotSecure, ConnectTimedOut, EarlyEnd, ReceiveTimedOut)


def as_requests(error: Exception, request: PreparedRequest) -> exceptions.RequestException:
    """Return the exception that `requests` would raise for `error`, an instance of `WIRE_ERRORS`.

    In `requests` a body that ends or stops is another failure than a head that does; a connection
    that ends in the TLS handshake is another one than a reset in it; and a later message of TLS,
    such as a demand for a certificate, is an error of TLS.
    """
    kind: type[exceptions.RequestException] = exceptions.ConnectionError
    if isinstance(error, TooLongResponse):
        kind = exceptions.RequestException
    elif isinstance(error, DifferentLengths):
        kind = exceptions.InvalidHeader
    elif isinstance(error, ConnectTimedOut):
        kind = exceptions.ReadTimeout if error.connected else exceptions.ConnectTimeout
    elif isinstance(error, ReceiveTimedOut):
        kind = exceptions.ConnectionError if error.in_body else exceptions.ReadTimeout
    elif isinstance(error, CannotSecure):
        if not isinstance(error.__cause__, ConnectionError):
            kind = exceptions.SSLError
    elif isinstance(error.__cause__, ssl.SSLError):
        kind = exceptions.SSLError
    elif isinstance(error, BadResponse | EarlyEnd) and error.in_body:
        kind = exceptions.ChunkedEncodingError
    return kind(error, request=request)
