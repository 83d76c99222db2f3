"""The context `users`: projects and users made for the run, or taken from the deployment record."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import (
    AT_ONCE,
    CHOICE,
    CHOSEN,
    NEW_USERS,
    RANDOM,
    ROUND_ROBIN,
    SETTLE_LATE_S,
    USERS,
    Cloud,
    CloudAccess,
    CloudUser,
    chosen_users,
    kinds,
    makes_users,
    neutron,
    remove_resources,
)
from osbench.plugin.errors import ContextError

#: Roles for new users: the first that exists is assigned.
_ROLES = ("member", "_member_")
_NUMBER = {"type": "integer", "minimum": 1}


class Users(context.Context):
    """Makes projects and users, each with a token, or uses the users of the deployment record.

    Users of the record are used if it has any and neither `tenants` nor `users_per_tenant` is
    given: all, or only users of a `name`. The user of an iteration depends on its number:
    `round_robin` cycles through the projects, and through the users of each project.
    """

    NAME: ClassVar[str] = "users"
    ORDER: ClassVar[int] = 100
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "tenants": _NUMBER | {"description": "projects to make; 1 by default"},
            "users_per_tenant": _NUMBER | {"description": "users of each; 1 by default"},
            "user_password": {
                "type": "string",
                "description": "password of all new users; random by default",
            },
            "resource_management_workers": _NUMBER
            | {"description": f"concurrent requests for making them; {AT_ONCE} by default"},
            "project_domain": {
                "type": "string",
                "description": "name or id of the domain of new projects; the admin's by default",
            },
            "user_domain": {
                "type": "string",
                "description": "name or id of the domain of new users; the admin's by default",
            },
            CHOSEN: {
                "oneOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                ],
                "description": "a user of the record, or a list of them, that iterations act as;"
                " all by default",
            },
            CHOICE: {
                "enum": [RANDOM, ROUND_ROBIN],
                "description": "how the user of an iteration is chosen; random by default",
            },
        },
        "additionalProperties": False,
        "examples": [{"tenants": 2, "users_per_tenant": 3, CHOICE: ROUND_ROBIN}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if both existing users and new ones are asked for; else []."""
        new = [key for key in NEW_USERS if key in config]
        if CHOSEN not in config or not new:
            return []
        return [f"{CHOSEN} chooses among users of the record, and {', '.join(new)} makes new ones"]

    def setup(self) -> None:
        """Create users, or take users of the record; log each in and store all in `made`.

        New users are stored with their passwords before the first is created. Raises
        DeploymentError if a chosen user is not in the record, or without an admin to create users,
        ContextError if a domain or role does not exist.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        self.made[CHOICE] = self.config.get(CHOICE, RANDOM)
        if CHOSEN not in self.config and makes_users(self.config, access.deployment):
            users = self._new(access)
        else:
            found = chosen_users(self.config, access.deployment)
            users = [CloudUser(credential=one) for one in found]
        self._keep(access.with_tokens(users, self._at))

    def cleanup(self) -> None:
        """Delete users and projects of setup, and these projects' security groups, by name.

        Does nothing for users of the record. Raises ContextError if some remain.
        """
        if not self.made.get("new_users"):
            return
        access = CloudAccess(self.surroundings, self.NAME)
        settle_s = SETTLE_LATE_S if self.surroundings.crashed else 0.0
        projects = {user["project_name"] for user in self.made[USERS]}
        names = projects | {user["username"] for user in self.made[USERS]}
        _remove_security_groups(access, projects)
        what = ["keystone.users", "keystone.projects"]
        remove_resources(access, what, access.beginning, names.__contains__, settle_s=settle_s)

    @property
    def _at(self) -> int:
        return int(self.config.get("resource_management_workers", AT_ONCE))

    def _keep(self, users: list[CloudUser]) -> None:
        self.made[USERS] = [user.to_dict() for user in users]
        self.keep()

    def _new(self, access: CloudAccess) -> list[CloudUser]:
        admin = access.admin
        like = admin.account.credential
        project_domain = domain_of(admin, self.config.get("project_domain") or like.project_domain)
        user_domain = domain_of(admin, self.config.get("user_domain") or like.user_domain)
        planned = self._planned(access, project_domain["name"], user_domain["name"])
        self.made["new_users"] = True
        # names and passwords are stored before the first request
        self._keep(planned)
        wanted = list(dict.fromkeys(one.credential.project_name for one in planned))
        made = access.each(
            "projects made",
            wanted,
            lambda name: _make(admin, "project", name=name, domain_id=project_domain["id"]),
            self._at,
        )
        projects = dict(zip(wanted, made, strict=True))
        role = member_role(admin)

        def make(user: CloudUser) -> CloudUser:
            credential = user.credential
            project = projects[credential.project_name]
            identity = _make(
                admin,
                "user",
                name=credential.username,
                password=credential.password,
                domain_id=user_domain["id"],
                default_project_id=project,
            )
            admin.request("PUT", "keystone", f"projects/{project}/users/{identity}/roles/{role}")
            return replace(user, user_id=identity, project_id=project)

        return access.each("users made", planned, make, self._at)

    def _planned(
        self, access: CloudAccess, project_domain: str, user_domain: str
    ) -> list[CloudUser]:
        """Return the users to be created, with random names and passwords; sends no request."""
        admin = access.admin
        like = admin.account.credential
        # random, so that no other client can have guessed these names
        beginning = f"{access.beginning}-{secrets.token_hex(4)}"
        return [
            CloudUser(
                credential=like.for_user(
                    username=f"{beginning}-{project}-{user}",
                    password=self.config.get("user_password") or secrets.token_urlsafe(18) + "aA1!",
                    project_name=f"{beginning}-{project}",
                    user_domain_name=user_domain,
                    project_domain_name=project_domain,
                ),
                temporary=True,
            )
            for project in range(self.config.get("tenants", 1))
            for user in range(self.config.get("users_per_tenant", 1))
        ]


def _make(admin: Cloud, what: str, **fields: Any) -> str:
    """Create a user or project with `fields`, or find an earlier attempt's; return its id."""
    response = admin.request(
        "POST", "keystone", f"{what}s", json={what: fields}, expected=(201, 409)
    )
    if response.status_code == 201:
        return str(response.json()[what]["id"])
    params = {"name": fields["name"], "domain_id": fields["domain_id"]}
    (found,) = admin.document("GET", "keystone", f"{what}s", params=params)[f"{what}s"]
    return str(found["id"])


def domain_of(admin: Cloud, named: str) -> dict[str, str]:
    """Return `id` and `name` of the domain with this name, else with this id, as a dict.

    Raises ContextError if there is none.
    """
    found = admin.document("GET", "keystone", "domains", params={"name": named})["domains"]
    if not found:
        response = admin.request("GET", "keystone", f"domains/{named}", expected=(200, 404))
        found = [response.json()["domain"]] if response.status_code == 200 else []
    if not found:
        raise ContextError(
            f"there is no domain {named!r} in Keystone; create it there, or name another"
        )
    return {"id": found[0]["id"], "name": found[0]["name"]}


def member_role(admin: Cloud) -> str:
    """Return the id of the role that new users get. Raises ContextError if there is none."""
    roles = admin.document("GET", "keystone", "roles")["roles"]
    by_name = {role["name"].lower(): str(role["id"]) for role in roles}
    for name in _ROLES:
        if name in by_name:
            return by_name[name]
    raise ContextError(f"there is no role {_ROLES[0]} in Keystone for new users; create it there")


def _remove_security_groups(access: CloudAccess, names: Collection[str]) -> None:
    """Delete all security groups of the workload's projects named in `names`, if there is Neutron.

    Neutron does not delete default groups with their projects.
    """
    admin = access.admin
    catalogue = admin.account.token(access.session()).service_catalog.catalog
    if not any(service["type"] == "network" for service in catalogue):
        return
    (kind,) = kinds("keystone.projects")
    for identity, (_, project) in access.objects(kind, access.beginning).items():
        if project["name"] in names:
            neutron.remove_security_groups(admin, identity)
