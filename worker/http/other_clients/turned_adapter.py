"""Connections of the library `requests` that take the addresses of a host in turn."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from types import MappingProxyType

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from osbench.common.network.bounded_adapter import BoundedLinesAdapter, BoundedResponse
from osbench.common.network.causes import root_cause
from osbench.worker.http.addresses import zoned_host
from osbench.worker.http.name_lookups import NameLookups
from osbench.worker.http.wire.wire_errors import CannotConnect

#: Of all threads of the process.
_LOOKUPS = NameLookups()


class _Turned(HTTPConnection):
    response_class = BoundedResponse

    def _new_conn(self) -> socket.socket:
        name, host, port = self._dns_host, zoned_host(self.host), self.port
        try:
            found = _LOOKUPS.addresses(host, port, None)
        except CannotConnect as error:
            raise NameResolutionError(host, self, socket.gaierror(str(error))) from error
        for number, address in enumerate(found, 1):
            # urllib3 connects to it; what TLS verifies is the name again
            self._dns_host = str(address[1][0])
            try:
                sock = super()._new_conn()
            except (ConnectTimeoutError, NewConnectionError) as error:
                _LOOKUPS.refused(host, port, address, root_cause(error))
                if number == len(found) or not isinstance(error, NewConnectionError):
                    raise
            else:
                _LOOKUPS.took(host, port, address)
                return sock
            finally:
                self._dns_host = name
        raise NewConnectionError(self, f"{host} has no address")


class _TurnedTls(_Turned, HTTPSConnection):
    pass


class _TurnedPool(HTTPConnectionPool):
    ConnectionCls = _Turned


class _TurnedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _TurnedTls


class TurnedAdapter(BoundedLinesAdapter):
    """A transport adapter whose connections take the addresses of a host in turn.

    Connections by proxy do not.
    """

    pools = MappingProxyType({"http": _TurnedPool, "https": _TurnedTlsPool})

    def request_url(
        self, request: requests.PreparedRequest, proxies: Mapping[str, str] | None
    ) -> str:
        url: str = super().request_url(request, proxies)
        path = request.path_url
        # requests takes slashes away from the beginning of a path
        return path if url == "/" + path.lstrip("/") else url
