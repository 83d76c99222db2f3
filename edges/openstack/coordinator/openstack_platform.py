"""The entry point of OpenStack clouds for the coordinator; each part is imported on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError, Problem
from osbench.common.plugin.cloud_platform import CloudCheck, NewRecord, OrphanSearch, SingleLogins
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.left_behind import LeftBehind
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task


class OpenStackPlatform:
    """A `CloudPlatform`: clouds with Keystone. Its methods import keystoneauth1, which is slow."""

    def record_of_environment(self, name: str, environ: Mapping[str, str]) -> NewRecord:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator import cloud_record  # noqa: PLC0415 - slow, see above

        return cloud_record.from_environment(name, environ)

    def record_of_cloud(
        self, name: str, cloud: str, region: str | None, environ: Mapping[str, str]
    ) -> NewRecord:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator import cloud_record  # noqa: PLC0415 - slow, see above

        return cloud_record.from_cloud(name, cloud, region, environ)

    def record_problems(self, deployment: Deployment) -> list[str]:
        """See `CloudPlatform`."""
        problems = []
        for place, credential in deployment.credentials.items():
            if credential.auth_type:
                # a password needs no loader
                from osbench.edges.openstack.common.login_plugins import load_plugin  # noqa: PLC0415

                try:
                    load_plugin(credential.auth_type, credential.plugin_options())
                except DeploymentError as error:
                    problems.append(f"openstack.{place}: {error}")
        return problems

    def check(
        self, deployment: Deployment, request_s: float, until: float, late: str
    ) -> CloudCheck:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator.cloud_check import OpenStackCheck  # noqa: PLC0415 - slow

        return OpenStackCheck(deployment, request_s, until, late)

    def single_logins(self, deployment: Deployment, lasts_s: float | None) -> SingleLogins:
        """See `CloudPlatform`."""
        if not any(one.auth_type for one in deployment.credentials.values()):
            return SingleLogins(deployment=deployment)
        from osbench.edges.openstack.coordinator.single_logins import single_logins  # noqa: PLC0415

        return single_logins(deployment, lasts_s)

    def login_problems(self, task: Task, plugins: Plugins, deployment: Deployment) -> list[Problem]:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator.login_limits import login_limits  # noqa: PLC0415

        return login_limits(task, plugins, deployment)

    def cloud_problems(self, task: Task, plugins: Plugins, deployment: Deployment) -> list[Problem]:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator.cloud_limits import cloud_limits  # noqa: PLC0415
        from osbench.edges.openstack.coordinator.login_limits import role_limits  # noqa: PLC0415

        found = role_limits(task, plugins, deployment)
        return found or cloud_limits(task, plugins, deployment)

    def context(self) -> dict[str, Any]:
        """Return the timeouts that Rally's configuration file sets; {} if it sets none."""
        from osbench.edges.openstack.common import waits  # noqa: PLC0415 - only for runs on a cloud

        timeouts = waits.configured_timeouts()
        return {waits.CONFIGURED_KEY: timeouts} if timeouts else {}

    def remove_left(self, left: LeftBehind, environment: ContextEnvironment) -> None:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator.leftovers import remove_left  # noqa: PLC0415 - slow

        remove_left(left, environment)

    def orphans(self, deployment: Deployment, *, rally: bool) -> OrphanSearch:
        """See `CloudPlatform`."""
        from osbench.edges.openstack.coordinator import orphans  # noqa: PLC0415 - slow

        naming = orphans.RALLY if rally else orphans.OSBENCH
        return orphans.CloudOrphanSearch(deployment, naming)
