"""The interface of clouds for workers: all that a worker asks of the cloud of its deployment.

It is a class without arguments and an entry point `osbench.worker_cloud` with the name of the
platform, loaded only for a deployment with users of a cloud. See
`osbench.common.plugin.cloud_platform`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from osbench.common.network.response_bound import ResponseBound
from osbench.common.plugin.cloud_platform import OPENSTACK
from osbench.common.plugin.entry_points import load_object
from osbench.worker.http.user.request_base import Reach


class WorkerCloud(Protocol):
    """The cloud as a worker process sees it.

    The module of the entry point imports only this interface at its top; methods import the rest.
    """

    def use_fast_transport(self, bound: ResponseBound) -> dict[str, Any]:
        """Make the cloud's clients in this process send requests by osbench's HTTP client.

        Returns keys for the context of iterations. A second call only returns the keys.
        """

    def reach(self, service: str, scenario: str, context: Mapping[str, Any]) -> Reach:
        """Return a function from a virtual user's number to service URL, headers and token.

        The users are logged in here. `scenario`: for messages. Raises DeploymentError,
        AuthenticationFailed, ConnectionError and TimeoutError.
        """


def worker_cloud() -> WorkerCloud:
    """Return the cloud for this process; raises PluginError if it is not installed."""
    return cast(WorkerCloud, load_object("worker_cloud", OPENSTACK)())
