"""The client with which a scenario sends requests to the services of the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from osbench.common.openstack.account import Account
from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.service_catalogue import ApiVersion
from osbench.common.plugin.scenario import Scenario
from osbench.worker.openstack.cloud_sessions import Call, Sessions


class Client(Cloud):
    """Requests of one scenario object; additional HTTP requests become actions of it."""

    def __init__(
        self,
        scenario: Scenario,
        sessions: Sessions,
        account: Account,
        versions: Mapping[str, ApiVersion],
    ) -> None:
        super().__init__(account, sessions.session, versions)
        self._scenario = scenario
        self._sessions = sessions

    def send(
        self, method: str, url: str, *, traced: bool = True, **options: Any
    ) -> requests.Response:
        """Send a request; `traced=False` keeps it out of the iteration's trace."""
        transport = self._sessions.transport()
        before, transport.call = transport.call, Call(self._scenario, method, url, traced=traced)
        try:
            return super().send(method, url, **options)
        finally:
            transport.call = before
