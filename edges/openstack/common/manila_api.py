"""Manila's API as scenarios and contexts use it: names of actions by microversion, share networks.

Microversions as in Manila's "REST API Version History"; without a configured one it is 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.edges.openstack.common.cloud import Cloud

SERVICE = "manila"
#: Keys of what contexts make, by project: ids of share networks, and of security services.
SHARE_NETWORKS = "manila_share_networks"
SECURITY_SERVICES = "manila_security_services"
#: Microversions from which actions have no prefix, and access rules have a list.
_PLAIN = (2, 7)
_RULES = (2, 45)


def action_name(cloud: Cloud, action: str) -> str:
    """Return the name of an action on a share, such as "extend", in the API version of `cloud`."""
    return action if cloud.microversion_of(SERVICE) >= _PLAIN else f"os-{action}"


def quota_path(cloud: Cloud) -> str:
    """Return the path of quotas of projects in the API version of `cloud`."""
    return "quota-sets" if cloud.microversion_of(SERVICE) >= _PLAIN else "os-quota-sets"


def lists_rules(cloud: Cloud) -> bool:
    """Return whether access rules are listed at `share-access-rules`, not by an action."""
    return cloud.microversion_of(SERVICE) >= _RULES


def create_once(cloud: Cloud, path: str, key: str, fields: Mapping[str, Any]) -> str:
    """Return the id of the object named `fields["name"]` in the list at `path`; create it if none.

    `key` is the object's key in documents. A retry thus does not create a second object.
    """
    name = fields["name"]
    found = cloud.document("GET", SERVICE, path, params={"name": name})[path.replace("-", "_")]
    for one in found:
        if one["name"] == name:
            return str(one["id"])
    made = cloud.document("POST", SERVICE, path, json={key: dict(fields)})
    return str(made[key]["id"])
