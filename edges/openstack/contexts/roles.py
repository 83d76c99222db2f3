"""The context `roles`: additional roles for the users of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import USERS, Cloud, CloudAccess
from osbench.plugin.errors import ContextError


class Roles(context.Context):
    """Assigns each user the listed roles that it lacks in its project; removes them afterwards."""

    NAME: ClassVar[str] = "roles"
    ORDER: ClassVar[int] = 330
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "description": "names of roles",
        "items": {"type": "string"},
        "minItems": 1,
        "examples": [["reader"]],
    }

    def setup(self) -> None:
        """Assign each user the roles that it lacks in its project, and log all users in again.

        Stores the assignments, and the users with their new tokens. Raises ContextError if a role
        does not exist, or users have no ids because the context `users` is missing.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        admin = access.admin
        wanted = [_role(admin, name) for name in self.config]
        users = access.users
        if not all(user.user_id and user.project_id for user in users):
            raise ContextError("needs the context users, which may be empty: `users: {}`")
        places = [(user.project_id, user.user_id) for user in users]
        missing = access.each(
            "roles looked up", places, lambda place: _missing(admin, *place, wanted)
        )
        assigned = [path for several in missing for path in several]
        # stored first: only assignments made here are removed
        self.made["roles_assigned"] = assigned
        self.keep()
        access.each("roles assigned", assigned, lambda path: admin.request("PUT", "keystone", path))
        self.made[USERS] = [user.to_dict() for user in access.with_tokens(users)]

    def cleanup(self) -> None:
        """Remove the role assignments that setup has made; earlier assignments are not touched."""
        assigned = self.made.get("roles_assigned")
        if not assigned:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        admin = access.admin
        access.each(
            "roles removed",
            assigned,
            lambda path: admin.request("DELETE", "keystone", path, expected=(204, 404)),
        )


def _role(admin: Cloud, name: str) -> str:
    found = admin.document("GET", "keystone", "roles", params={"name": name})["roles"]
    if not found:
        raise ContextError(
            f"there is no role {name!r} in Keystone; create it there, or name another"
        )
    return str(found[0]["id"])


def _missing(admin: Cloud, project: str, user: str, roles: list[str]) -> list[str]:
    """Return the Keystone paths of the roles that a user lacks in a project; all given by ids."""
    base = f"projects/{project}/users/{user}/roles"
    has = {role["id"] for role in admin.document("GET", "keystone", base)["roles"]}
    return [f"{base}/{role}" for role in roles if role not in has]
