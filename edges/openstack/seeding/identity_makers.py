"""Kinds of a seed in Keystone: projects and users."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from osbench.edges.openstack.contexts.users import domain_of, member_role
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.seeding.seed_maker import (
    READY,
    UNFINISHED,
    SeedEntry,
    SeedMaker,
    SeedObject,
)


class SeedProjects(SeedMaker):
    """Projects, in the domain of the admin's project."""

    WORD: ClassVar[str] = "projects"
    GROUP: ClassVar[str] = "project"
    KIND: ClassVar[str] = "keystone.projects"
    KEY: ClassVar[str] = "project"
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "domain_id")

    def prepare(self) -> None:
        """Look up the domain. Raises ContextError if there is none."""
        super().prepare()
        account = self.cloud.account
        self._domain = domain_of(self.cloud, account.credential.project_domain)["id"]

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return the domain."""
        return {"domain_id": self._domain}


class SeedUsers(SeedMaker):
    """Users in the domain of the admin; with `of` each has the role `member` in a project."""

    WORD: ClassVar[str] = "users"
    GROUP: ClassVar[str] = "user"
    KIND: ClassVar[str] = "keystone.users"
    KEY: ClassVar[str] = "user"
    PARENTS: ClassVar[tuple[str, ...]] = ("projects",)
    PROPERTIES: ClassVar[Mapping[str, Any]] = {"password": {"type": "string", "minLength": 1}}
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "domain_id", "password", "default_project_id")

    def __init__(self, entry: SeedEntry, access: CloudAccess) -> None:
        super().__init__(entry, access)
        self._members: dict[str, set[str]] = {}

    def prepare(self) -> None:
        """Look up the domain, and the role if it is needed. Raises ContextError without one."""
        super().prepare()
        account = self.cloud.account
        like = account.credential
        self._domain = domain_of(self.cloud, like.user_domain)
        if self.entry.of:
            self._role  # noqa: B018 - looked up here, and not after the first creation
            self._project_domain = domain_of(self.cloud, like.project_domain)

    @property
    def domain_names(self) -> dict[str, str]:
        """The domains of the users and of their projects, as a record names them."""
        return {
            "user_domain_name": self._domain["name"],
            "project_domain_name": self._project_domain["name"],
        }

    @cached_property
    def _role(self) -> str:
        return member_role(self.cloud)

    def inspect(self, objects: Sequence[SeedObject]) -> None:
        """Ask for the members of the projects of users that are there."""
        projects = sorted({one.parent for one in objects} - {""})
        members = self._access.each("members of projects looked up", projects, self._members_of)
        self._members = dict(zip(projects, members, strict=True))

    def _members_of(self, project: str) -> set[str]:
        params = {"scope.project.id": project, "role.id": self._role}
        found = self.cloud.document("GET", "keystone", "role_assignments", params=params)
        return {one["user"]["id"] for one in found["role_assignments"] if "user" in one}

    def state(self, one: Mapping[str, Any], parent: str) -> str:
        """Return UNFINISHED for a user without its role, else READY."""
        lacks = parent in self._members and one["id"] not in self._members[parent]
        return UNFINISHED if lacks else READY

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return domain, password (random if the entry has none) and default project."""
        password = self.option.get("password") or f"{secrets.token_urlsafe(18)}aA1!"
        project = {"default_project_id": one.parent} if one.parent else {}
        return {"domain_id": self._domain["id"], "password": password, **project}

    def complete(self, one: SeedObject) -> None:
        """Assign the role in the project; it may have been assigned before."""
        if one.parent:
            path = f"projects/{one.parent}/users/{one.identity}/roles/{self._role}"
            self.cloud.request("PUT", "keystone", path)
