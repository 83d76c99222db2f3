"""The rules of a task on connections, its keys `connections` and `source` of `http`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from osbench.common.network.response_bound import ResponseBound
from osbench.edges.flows.ending_connection import EndedConnections, EndingConnection, EndRule
from osbench.edges.flows.source_addresses import SourceAddresses, addresses_of, source_texts
from osbench.worker.http.exchange_steps import HttpConnection, Steps
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.wire_request import WireRequest

if TYPE_CHECKING:
    from osbench.worker.http.other_clients.curl_client import CurlClient
    from osbench.worker.http.other_clients.requests_client import RequestsClient

CONNECTIONS, SOURCE = "connections", "source"


class TaskConnectionRules:
    """Rules for all connections of a workload in a process: `ConnectionRules` of the core."""

    def __init__(self, wish: Mapping[str, Any]) -> None:
        """Read `wish`, the task's key `http`. Raises FleetError if this host has no `source`."""
        self._rule = EndRule.of(wish.get(CONNECTIONS, {}))
        self._sources = SourceAddresses(wish[SOURCE]) if SOURCE in wish else None
        self.ended = EndedConnections()
        self.opener: Opener = RuledOpener(self._rule, self._sources, self.ended)

    @staticmethod
    def faults(wish: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield key and message of each mistake in `wish`: no address, or of another family.

        The family is that of the base URL, if its host is an address.
        """
        if SOURCE not in wish:
            return
        try:
            versions = {one.version for one in addresses_of(source_texts(wish[SOURCE]))}
        except ValueError as error:
            yield SOURCE, str(error)
            return
        try:
            target = ipaddress.ip_address(urlsplit(wish.get("base", "")).hostname or "")
        except ValueError:
            # a name may have addresses of both
            return
        if target.version not in versions:
            yield (
                SOURCE,
                f"base is the IPv{target.version} address {target}, and no source address is of"
                f" that kind: add one of IPv{target.version}",
            )

    def others(
        self, of_run: Sequence[str], bound: ResponseBound
    ) -> tuple[CurlClient, RequestsClient]:
        """Return libcurl and `requests` with the rules."""
        # their libraries take 6 MB, and few requests need them
        from osbench.edges.flows.ruled_clients import RuledCurlClient, RuledRequestsClient  # noqa: PLC0415 - see above

        parts = self._rule, self._sources, self.ended
        return RuledCurlClient(of_run, parts), RuledRequestsClient(of_run, bound, parts)


class RuledOpener(Opener):
    """Opens connections that end by a rule, from the source addresses of a task."""

    def __init__(
        self, rule: EndRule, sources: SourceAddresses | None, ended: EndedConnections
    ) -> None:
        """`sources` is None if the system chooses them. `ended` counts the ends."""
        super().__init__()
        self._rule, self._sources, self._ended = rule, sources, ended

    def open(
        self, request: WireRequest, limits: RequestLimits, phases: ExchangePhases
    ) -> Steps[HttpConnection]:
        steps = super().open(request, limits, phases)
        if self._sources is not None:
            steps = self._sources.bound(steps)
        connection = yield from steps
        if self._rule == EndRule():
            return connection
        ending: HttpConnection = EndingConnection(connection, self._rule, self._ended)
        return ending
