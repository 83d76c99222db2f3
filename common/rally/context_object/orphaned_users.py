"""Users and projects that Rally's `users` made and had no time to note: found by their names.

Rally notes them when all are made. Other contexts look for what they made by name anyway.
"""

from __future__ import annotations

import importlib
from typing import Any

#: The context whose cleanup only knows what was noted.
USERS = "users@openstack"


def remove(context: Any) -> None:
    """Delete what a context of Rally's whose setup was cut short has left; others leave nothing."""
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
