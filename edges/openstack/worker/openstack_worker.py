"""The entry point of OpenStack clouds in workers: transport of clients, and users of a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from osbench.common.network.response_bound import ResponseBound
from osbench.worker.http.user.request_base import Reach, Token, request_limit_s

if TYPE_CHECKING:
    from osbench.edges.openstack.worker.short_way import ShortWay


class OpenStackWorker:
    """A `WorkerCloud`. keystoneauth1, which is slow to import, is imported by the methods."""

    def __init__(self) -> None:
        self._short_way: ShortWay | None = None

    def use_fast_transport(self, bound: ResponseBound) -> dict[str, Any]:
        """Make OpenStack's clients in this process send requests by osbench's HTTP client.

        Replaces a function of keystoneauth1 at the first call; later ones ignore `bound`. Returns
        an entry for contexts: the shared state.
        """
        from osbench.edges.openstack.worker.fast_session import ClientSessions  # noqa: PLC0415
        from osbench.edges.openstack.worker.short_way import SHORT_WAY, ShortWay  # noqa: PLC0415

        if self._short_way is None:
            self._short_way = ShortWay(bound)
            ClientSessions(self._short_way).install()
        return {SHORT_WAY: self._short_way}

    def reach(self, service: str, scenario: str, context: Mapping[str, Any]) -> Reach:
        """See `WorkerCloud`."""
        from osbench.edges.openstack.common.account import AccountToken  # noqa: PLC0415
        from osbench.edges.openstack.common.cloud import Cloud  # noqa: PLC0415
        from osbench.edges.openstack.common.cloud_users import openstack_of  # noqa: PLC0415
        from osbench.edges.openstack.worker.user_selector import UserSelector  # noqa: PLC0415

        deployment = openstack_of(context.get("deployment"), scenario)
        selector = context.get("user_selector")
        if selector is None:
            selector = UserSelector(context, deployment, request_limit_s(context))
            selector.warm(admin=False, users=True)

        def request_base(number: int) -> tuple[str, Mapping[str, str], Token]:
            account = selector.user(number)
            cloud = Cloud(account, selector.sessions.session, selector.versions)
            token = AccountToken(account, selector.sessions.session)
            return cloud.address(service), cloud.headers(service), token

        return request_base
