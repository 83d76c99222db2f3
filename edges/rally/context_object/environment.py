"""Makes the context object with which Rally would start a workload, from osbench's deployment.

It names task, scenario and owner, and has the configuration of contexts and the cloud's logins.
"""

from __future__ import annotations

import copy
import importlib
import uuid
from collections.abc import Mapping
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.rally import plugin_registry
from osbench.edges.rally.context_object import codec

#: Key of the packed context object in `made`.
KEY = "rally"
#: Rally's name of the only platform there is.
PLATFORM = "existing@openstack"
#: Keys of a deployment record that Rally does not know.
_OURS = ("enable_profiler", "endpoint_overrides", "api_versions", "system_admin")
#: Namespace for the UUIDs of Rally's tasks, made from run ids.
_RUNS = uuid.UUID("6b0d3f2e-9f0c-4a55-8d4e-2f4a5d1c7e90")


def context_object(environment: ContextEnvironment, scenario: str) -> dict[str, Any]:
    """Return a new context object, as Rally's engine makes it before it starts a workload.

    `scenario`: its name. The new owner id becomes part of the names of all resources; Rally's
    cleanup finds them by it. Raises ContextError as `platform_data` does.
    """
    env = _environment(environment.deployment)
    return {
        "task": {
            "uuid": str(uuid.uuid5(_RUNS, environment.run)),
            # of two names that Rally's task has for it
            "env_uuid": env["uuid"],
            "deployment_uuid": env["uuid"],
            "status": "running",
        },
        "owner_id": str(uuid.uuid4()),
        "scenario_name": scenario,
        "config": _config(environment.contexts),
        "env": env,
    }


def task_in_names(made: Mapping[str, Any]) -> str:
    """Return the owner id's first 8 digits, which names of a Rally context's resources have.

    `made`: the stored results of a context; "" if it is not of Rally. Raises ContextError or
    ValueError if the stored object cannot be read.
    """
    packed = made.get(KEY)
    return "" if packed is None else str(codec.unpack(packed)["owner_id"]).replace("-", "")[:8]


def platform_data(deployment: Deployment) -> dict[str, Any]:
    """Return Rally's data of the deployment's cloud: admin, users, API versions; sends no request.

    Raises ContextError if rally-openstack is not installed, or if a login is not by password.
    """
    try:
        module = importlib.import_module("rally_openstack.environment.platforms.existing")
    except ImportError:
        raise ContextError(
            f"deployment {deployment.name} is an OpenStack, and rally-openstack is not installed; "
            "install it: pip install rally-openstack"
        ) from None
    data, _ = module.OpenStack(_spec(deployment)).create()
    made: dict[str, Any] = data
    return made


def _environment(deployment: Deployment | None) -> dict[str, Any]:
    named = deployment.name if deployment is not None else "none"
    made: dict[str, Any] = {
        "uuid": str(uuid.uuid5(_RUNS, named)),
        "name": named,
        "status": "READY",
        "spec": {},
        "platforms": {},
    }
    if deployment is not None and deployment.platform == "openstack":
        made["spec"] = {PLATFORM: _spec(deployment)}
        made["platforms"] = {"openstack": platform_data(deployment)}
    return made


def _spec(deployment: Deployment) -> dict[str, Any]:
    spec = {key: copy.deepcopy(item) for key, item in deployment.content.items()}
    for key in _OURS:
        spec.pop(key, None)
    if "admin" in spec:
        spec["admin"] = _user(deployment, "admin", spec["admin"])
    if "users" in spec:
        spec["users"] = [
            _user(deployment, f"users[{at}]", user) for at, user in enumerate(spec["users"])
        ]
    return spec


def _user(deployment: Deployment, place: str, user: dict[str, Any]) -> dict[str, Any]:
    """Return a login of the record in Rally's form. Raises ContextError if Rally has no such."""
    if "auth_type" not in user:
        return user
    auth = user["auth"]
    made = {key: auth.get(key) for key in ("username", "password", "project_name")}
    made["project_name"] = made["project_name"] or auth.get("tenant_name")
    domains = {key: auth.get(f"{key}_domain_id") or "default" for key in ("user", "project")}
    named = {f"{key}_domain_name": auth.get(f"{key}_domain_name") for key in domains}
    elsewhere = [key for key, value in domains.items() if value != "default"]
    if (
        user["auth_type"] not in ("password", "v3password")
        or not all(made.values())
        or any(not named[f"{key}_domain_name"] for key in elsewhere)
        or auth.get("trust_id")
        or auth.get("system_scope")
    ):
        raise ContextError(
            f"deployment {deployment.name}: Rally's plug-ins log in with username, password, "
            f"project_name and names of domains only, and {place} is a login by "
            f"{user['auth_type']}; run osbench's own plug-ins, or give Rally a user with a password"
        )
    return made | {key: name for key, name in named.items() if name}


def _config(contexts: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, config in contexts.items():
        cls = plugin_registry.plugin("context", name)
        if cls is not None:
            found[cls.get_fullname()] = copy.deepcopy(config)
    return found
