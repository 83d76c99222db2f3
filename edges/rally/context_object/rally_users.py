"""Admin and users of a cloud in Rally's contexts; removes users that a failed setup left behind."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from typing import Any

from osbench.common.deployment.credential import Credential
from osbench.common.plugin.context import ContextEnvironment


def users_for_rally(environment: ContextEnvironment, platform: Mapping[str, Any]) -> dict[str, Any]:
    """Return entries for Rally's context object: the admin, and users made by the native context.

    Other contexts of Rally need them if Rally's own context `users` is not used. `platform`:
    Rally's data of the cloud. Users come with tenants and `user_choice_method`, if the native
    context `users` was set up before.
    """
    # another edge, which only clouds need
    from osbench.edges.openstack.common.cloud_users import (  # noqa: PLC0415
        CHOICE,
        RANDOM,
        USERS,
    )

    added: dict[str, Any] = {}
    admin = platform.get("admin")
    if admin:
        added["admin"] = {"credential": _credential(admin, platform)}
    kept = environment.context.get(USERS)
    if not kept:
        return added
    like = admin or platform["users"][0]
    tenants: dict[str, Any] = {}
    users = []
    for one in kept:
        project = one["project_id"]
        own = {key: one[key] for key in ("username", "password")}
        own |= {key: one[key] for key in ("user_domain_name", "project_domain_name")}
        own |= {"tenant_name": one["project_name"], "permission": "user"}
        user = {
            "id": one["id"],
            "tenant_id": project,
            "credential": _credential({**like, **own}, platform),
        }
        tenant = tenants.setdefault(
            project, {"id": project, "name": one["project_name"], "users": []}
        )
        tenant["users"].append(user)
        users.append(user)
    choice = environment.context.get(CHOICE, RANDOM)
    return {**added, "users": users, "tenants": tenants, "user_choice_method": choice}


def native_users(carried: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the users in Rally's context object as osbench's `users` stores them, or []."""
    # another edge, which only clouds need
    from osbench.edges.openstack.common.cloud_users import CloudUser  # noqa: PLC0415

    found = []
    for one in carried.get("users") or ():
        login = one["credential"]
        found.append(
            CloudUser(
                credential=Credential(
                    auth_url=login["auth_url"],
                    username=login["username"],
                    password=login["password"],
                    project_name=login["tenant_name"],
                    user_domain_name=login["user_domain_name"],
                    project_domain_name=login["project_domain_name"],
                ),
                user_id=str(one["id"]),
                project_id=str(one["tenant_id"]),
            ).to_dict()
        )
    return found


def _credential(content: Mapping[str, Any], platform: Mapping[str, Any]) -> Any:
    module = importlib.import_module("rally_openstack.common.credential")
    api_info = {**platform.get("api_info", {}), **content.get("api_info", {})}
    return module.OpenStackCredential(**copy.deepcopy({**content, "api_info": api_info}))


#: The context whose cleanup only removes recorded resources.
_RALLY_USERS = "users@openstack"


def remove_orphans(context: Any) -> None:
    """Delete users and projects that a Rally `users` context created before its setup failed.

    They are found by name, since Rally records them only when all exist. Does nothing for other
    contexts, and for existing users.
    """
    if context.get_fullname() != _RALLY_USERS or context.existing_users:
        return
    osclients: Any = importlib.import_module("rally_openstack.common.osclients")
    identity: Any = importlib.import_module("rally_openstack.common.services.identity.identity")
    service = identity.Identity(osclients.Clients(context.credential))
    for found, delete in (
        (service.list_users(), service.delete_user),
        (service.list_projects(), service.delete_project),
    ):
        for one in found:
            if _is_of(context, one.name):
                delete(one.id)


def _is_of(context: Any, name: str) -> bool:
    matches: bool = context.name_matches_object(name, task_id=context.get_owner_id())
    return matches
