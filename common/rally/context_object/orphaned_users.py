"""Users and projects that Rally's context `users` created but did not record, found by name.

Rally records them only after all are created. Other contexts find their resources by name anyway.
"""

from __future__ import annotations

import importlib
from typing import Any

#: The context whose cleanup only removes recorded resources.
USERS = "users@openstack"


def remove(context: Any) -> None:
    """Delete the users and projects of a `users` context whose setup did not finish."""
    if context.get_fullname() != USERS or context.existing_users:
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
