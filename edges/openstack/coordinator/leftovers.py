"""Removes resources that a context of Rally could not remove, if osbench knows their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from osbench.common.errors import ContextError, OsbenchError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.left_behind import LeftBehind
from osbench.edges.openstack.common.cloud_users import USERS
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.resource_cleanup import remove_resources

#: Rally's kinds of resources (rally_openstack/task/cleanup/resources.py) that osbench knows, in the
#: order in which they are removed.
_KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "heat.stacks": "heat.stacks",
        "nova.servers": "nova.servers",
        "nova.server_groups": "nova.server_groups",
        "nova.keypairs": "nova.keypairs",
        "octavia.load_balancer": "octavia.load_balancers",
        "neutron.router": "neutron.routers",
        "neutron.port": "neutron.ports",
        "neutron.subnet": "neutron.subnets",
        "neutron.network": "neutron.networks",
        "neutron.security_group": "neutron.security_groups",
        "cinder.transfers": "cinder.transfers",
        "cinder.volume_snapshots": "cinder.snapshots",
        "cinder.volumes": "cinder.volumes",
        "glance.images": "glance.images",
        "zaqar.queues": "zaqar.queues",
        "swift.container": "swift.containers",
        "mistral.executions": "mistral.executions",
        "mistral.workflows": "mistral.workflows",
        "mistral.workbooks": "mistral.workbooks",
    }
)


def remove_left(left: LeftBehind, environment: ContextEnvironment) -> None:
    """Remove the resources that a context has left behind; return once none of them is left.

    Raises ContextError if a kind is unknown, after removing the known ones, or if some
    resources cannot be removed. The message has the command that removes known kinds.
    """
    problems = [] if _KNOWN.keys() >= set(left.kinds) else [str(left)]
    known = [ours for theirs, ours in _KNOWN.items() if theirs in left.kinds]
    if known:
        context = {**environment.context, USERS: left.users}
        try:
            access = CloudAccess(replace(environment, context=context), "cleanup")
            remove_resources(access, known, "", left.is_ours, settle_s=0.0)
        except (OsbenchError, OSError) as error:
            problems = [str(left), str(error)]
    if problems:
        named = environment.deployment.name if environment.deployment else "NAME"
        raise ContextError(
            f"{'; '.join(problems)}; `osbench-coord cleanup --orphans --rally --deployment {named} "
            f"--older 0s` lists and removes resources of Rally task {left.task}; remove the "
            "rest by hand"
        )
