"""Scenarios of Keystone: create, list, change and delete users, projects, roles and so on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.scenarios.openstack_scenario import (
    OpenStackScenario,
    openstack,
    without_none,
)

#: Attributes that an update must not change: the clean-up would not find the user again.
_NAMES = ("name", "domain_name")
#: Allowed keys of arguments that are mappings.
_TAKEN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "create_user_kwargs": ("default_role", "domain_name", "enabled", "password", "project_id"),
        "create_role_kwargs": ("domain_name",),
        # filtered by user or project, the list would not contain the new role
        "list_role_kwargs": ("domain_name",),
    }
)
#: The domain of new objects where the task names none.
_DEFAULT = "Default"


def _as_admin(*kinds: str, users: bool = False) -> dict[str, Any]:
    """Return the needs of a scenario of the administrator that leaves objects of `kinds`."""
    return {
        "services": ("keystone",),
        "admin": True,
        "users": users,
        "cleanup": tuple(f"keystone.{kind}" for kind in kinds),
    }


class KeystoneBasic(OpenStackScenario):
    """Rally's `KeystoneBasic` scenarios, on users, projects, roles, services, EC2 credentials.

    `name_length` and the like are accepted and ignored.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments; look up the ids of the domains in which objects will be created.

        Stores them in `context["domains"]` by name; an unknown name stands for itself. Raises
        DeploymentError for an argument that is not supported.
        """
        args = context["args"]
        _check(args)
        credential = cloud.account.credential
        granted = cloud.account.token(cloud.session())
        own = credential.project_domain_name
        known = {own: granted.project_domain_id} if own else {_DEFAULT: "default"}
        context["domains"] = known
        nested = [args.get(name) or {} for name in _TAKEN]
        wanted = {one.get("domain_name") for one in (args, *nested)} - {None}
        needs = cls.method(context).needs
        if needs.admin and not needs.users:
            # scenarios that make users or projects; other scenarios act as a user, who may not
            # list domains
            wanted.add(_DEFAULT)
        for name in sorted(wanted - known.keys()):
            found = cloud.document("GET", "keystone", "domains", params={"name": name})["domains"]
            known[name] = str(found[0]["id"]) if found else name

    # the arguments of scenarios that create a user

    @action_timer("keystone_v3.create_user")
    def _create_user(
        self,
        name_length: int = 10,
        password: str | None = None,
        project_id: str | None = None,
        domain_name: str | None = None,
        enabled: bool = True,
        default_role: str = "member",
    ) -> dict[str, Any]:
        fields = without_none(
            {
                "name": self.new_name(),
                "password": password,
                "default_project_id": project_id,
                "domain_id": self._domain(domain_name),
                "enabled": enabled,
            }
        )
        user: dict[str, Any] = self._post("user", fields)
        if project_id:
            for role in self._list_roles():
                if role["name"].lower() in (default_role, f"_{default_role}_"):
                    self._add_role(role["id"], user["id"], project_id)
                    break
        return user

    # scenarios

    @openstack("KeystoneBasic.create_user", takes=_create_user, **_as_admin("users"))
    def create_user(self, **user_kwargs: Any) -> None:
        """Create a user."""
        self._create_user(**user_kwargs)

    @openstack("KeystoneBasic.create_delete_user", takes=_create_user, **_as_admin("users"))
    def create_delete_user(self, **user_kwargs: Any) -> None:
        """Create a user and delete it."""
        user = self._create_user(**user_kwargs)
        self._delete_user(user["id"])

    @openstack("KeystoneBasic.create_user_set_enabled_and_delete", **_as_admin("users"))
    def create_user_set_enabled_and_delete(
        self,
        enabled: bool = True,
        password: str | None = None,
        project_id: str | None = None,
        domain_name: str | None = None,
        default_role: str = "member",
    ) -> None:
        """Create a user, change `enabled` to its opposite, and delete the user."""
        user = self._create_user(
            password=password,
            project_id=project_id,
            domain_name=domain_name,
            enabled=enabled,
            default_role=default_role,
        )
        self._update_user(user["id"], {"enabled": not enabled})
        self._delete_user(user["id"])

    @openstack("KeystoneBasic.create_and_list_users", takes=_create_user, **_as_admin("users"))
    def create_and_list_users(self, **user_kwargs: Any) -> None:
        """Create a user and list all users."""
        self._create_user(**user_kwargs)
        self._list("users")

    @openstack("KeystoneBasic.create_user_update_password", **_as_admin("users"))
    def create_user_update_password(
        self, name_length: int | None = None, password_length: int | None = None
    ) -> None:
        """Create a user and set another, generated password. Both arguments are ignored."""
        user = self._create_user()
        self._update_user(user["id"], {"password": self.new_name()})

    @openstack("KeystoneBasic.create_and_update_user", **_as_admin("users"))
    def create_and_update_user(
        self,
        create_user_kwargs: dict[str, Any] | None = None,
        update_user_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a user, update it, get it, and check the changed fields except the password."""
        changes = dict(update_user_kwargs or {})
        user = self._create_user(**(create_user_kwargs or {}))
        self._update_user(user["id"], changes)
        found = self.admin.document("GET", "keystone", f"users/{user['id']}")["user"]
        for name, value in changes.items():
            if name != "password":
                self.checked(found.get(name) == value, f"{name} of the user is not updated")

    @openstack("KeystoneBasic.create_tenant", **_as_admin("projects"))
    def create_tenant(self, name_length: int = 10, domain_name: str | None = None) -> None:
        """Create a project, in the domain `domain_name` or the default one."""
        self._create_project(domain_name)

    @openstack("KeystoneBasic.create_tenant_with_users", **_as_admin("users", "projects"))
    def create_tenant_with_users(
        self, users_per_tenant: int, name_length: int = 10, domain_name: str | None = None
    ) -> None:
        """Create a project, and `users_per_tenant` users in it."""
        project = self._create_project(domain_name)
        with ActionTimer(self, "keystone_v3.create_users"):
            for _ in range(users_per_tenant):
                self._create_user(project_id=project["id"])

    @openstack("KeystoneBasic.create_and_list_tenants", **_as_admin("projects"))
    def create_and_list_tenants(
        self, name_length: int = 10, domain_name: str | None = None
    ) -> None:
        """Create a project and list all projects."""
        self._create_project(domain_name)
        self._list("projects")

    @openstack("KeystoneBasic.create_update_and_delete_tenant", **_as_admin("projects"))
    def create_update_and_delete_tenant(
        self, name_length: int | None = None, domain_name: str | None = None
    ) -> None:
        """Create a project, give it another name and description, and delete it."""
        project = self._create_project(domain_name)
        changes = {"name": self.new_name(), "description": self.new_name()}
        with ActionTimer(self, "keystone_v3.update_project"):
            self.admin.request(
                "PATCH", "keystone", f"projects/{project['id']}", json={"project": changes}
            )
        with ActionTimer(self, "keystone_v3.delete_project"):
            self.admin.request("DELETE", "keystone", f"projects/{project['id']}")

    @openstack("KeystoneBasic.authenticate_user_and_validate_token", **_as_admin())
    def authenticate_user_and_validate_token(self) -> None:
        """Get a new token of the administrator, and validate it at Keystone."""
        with ActionTimer(self, "keystone_v3.fetch_token"):
            sessions = self.context["user_selector"].sessions
            granted = sessions.authenticate(self.admin.account.credential)
        with ActionTimer(self, "keystone_v3.validate_token"):
            headers = {"X-Subject-Token": granted.auth_token}
            self.admin.request("GET", "keystone", "auth/tokens", headers=headers)

    @openstack("KeystoneBasic.add_and_remove_user_role", **_as_admin("roles", users=True))
    def add_and_remove_user_role(self) -> None:
        """Create a role, assign it to the user in its project, and revoke it."""
        role = self._create_role()
        self._add_role(role["id"], self.cloud.user_id, self.cloud.project_id)
        path = self._assignment(role["id"], self.cloud.user_id, self.cloud.project_id)
        with ActionTimer(self, "keystone_v3.revoke_role"):
            self.admin.request("DELETE", "keystone", path)

    @openstack("KeystoneBasic.create_add_and_list_user_roles", **_as_admin("roles", users=True))
    def create_add_and_list_user_roles(self) -> None:
        """Create a role, assign it to the user, and list the user's roles in its project."""
        role = self._create_role()
        user, project = self.cloud.user_id, self.cloud.project_id
        self._add_role(role["id"], user, project)
        with ActionTimer(self, "keystone_v3.list_roles"):
            self.admin.document("GET", "keystone", f"projects/{project}/users/{user}/roles")

    @openstack("KeystoneBasic.create_and_delete_role", **_as_admin("roles"))
    def create_and_delete_role(self) -> None:
        """Create a role and delete it."""
        role = self._create_role()
        with ActionTimer(self, "keystone_v3.delete_role"):
            self.admin.request("DELETE", "keystone", f"roles/{role['id']}")

    @openstack("KeystoneBasic.create_and_get_role", **_as_admin("roles"))
    def create_and_get_role(self, domain_name: str | None = None) -> None:
        """Create a role and get it."""
        role = self._create_role(domain_name)
        self._get("role", role["id"])

    @openstack("KeystoneBasic.create_and_list_roles", **_as_admin("roles"))
    def create_and_list_roles(
        self,
        create_role_kwargs: dict[str, Any] | None = None,
        list_role_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a role, list all roles, and check that it is among them."""
        role = self._create_role(**(create_role_kwargs or {}))
        found = self._list_roles(**(list_role_kwargs or {}))
        self.checked(
            role["id"] in {one["id"] for one in found}, "the role that was made is not in the list"
        )

    @openstack("KeystoneBasic.get_entities", **_as_admin("users", "projects", "roles", "services"))
    def get_entities(self, service_name: str | None = "keystone") -> None:
        """Create a project, a user and a role, and get each of them and a service.

        The service is found by its name, which fails if there is none, or created if `service_name`
        is null.
        """
        project = self._create_project()
        user = self._create_user(project_id=project["id"])
        role = self._create_role()
        self._get("project", project["id"])
        self._get("user", user["id"])
        self._get("role", role["id"])
        if service_name is None:
            service = self._create_service(None, None)
        else:
            found = [one for one in self._list("services") if one.get("name") == service_name]
            if not found:
                said = f"there is no service named {service_name}; create it, or name another"
                raise RequestFailed(said, status=404)
            service = found[0]
        with ActionTimer(self, "keystone_v3.get_services"):
            self.admin.document("GET", "keystone", f"services/{service['id']}")

    @openstack("KeystoneBasic.create_and_delete_service", **_as_admin("services"))
    def create_and_delete_service(
        self,
        name: str | None = None,
        service_type: str | None = None,
        description: str | None = None,
    ) -> None:
        """Create a service and delete it. `name` is ignored."""
        service = self._create_service(service_type, description)
        with ActionTimer(self, "keystone_v3.delete_service"):
            self.admin.request("DELETE", "keystone", f"services/{service['id']}")

    @openstack("KeystoneBasic.create_and_list_services", **_as_admin("services"))
    def create_and_list_services(
        self,
        name: str | None = None,
        service_type: str | None = None,
        description: str | None = None,
    ) -> None:
        """Create a service and list all services. `name` is ignored."""
        self._create_service(service_type, description)
        self._list("services")

    @openstack("KeystoneBasic.create_and_list_ec2credentials", temporary=True)
    def create_and_list_ec2credentials(self) -> None:
        """Create EC2 credentials of the user and list them."""
        self._create_ec2()
        with ActionTimer(self, "keystone_v3.list_ec2creds"):
            self.cloud.document("GET", "keystone", self._ec2)

    @openstack("KeystoneBasic.create_and_delete_ec2credential", temporary=True)
    def create_and_delete_ec2credential(self) -> None:
        """Create EC2 credentials of the user and delete them."""
        made = self._create_ec2()
        with ActionTimer(self, "keystone_v3.delete_ec2creds"):
            self.cloud.request("DELETE", "keystone", f"{self._ec2}/{made['access']}")

    # atomic actions

    @action_timer("keystone_v3.update_user")
    def _update_user(self, user: str, changes: Mapping[str, Any]) -> None:
        self.admin.request("PATCH", "keystone", f"users/{user}", json={"user": dict(changes)})

    @action_timer("keystone_v3.delete_user")
    def _delete_user(self, user: str) -> None:
        self.admin.request("DELETE", "keystone", f"users/{user}")

    @action_timer("keystone_v3.create_project")
    def _create_project(self, domain_name: str | None = None) -> dict[str, Any]:
        return self._post(
            "project", {"name": self.new_name(), "domain_id": self._domain(domain_name)}
        )

    @action_timer("keystone_v3.create_role")
    def _create_role(self, domain_name: str | None = None) -> dict[str, Any]:
        fields = {"name": self.new_name()}
        if domain_name:
            fields["domain_id"] = self._domain(domain_name)
        return self._post("role", fields)

    @action_timer("keystone_v3.list_roles")
    def _list_roles(self, domain_name: str | None = None) -> list[dict[str, Any]]:
        params = {"domain_id": self._domain(domain_name)} if domain_name else None
        found: list[dict[str, Any]] = self.admin.document(
            "GET", "keystone", "roles", params=params
        )["roles"]
        return found

    @action_timer("keystone_v3.add_role")
    def _add_role(self, role: str, user: str, project: str) -> None:
        self.admin.request("PUT", "keystone", self._assignment(role, user, project))

    @action_timer("keystone_v3.create_service")
    def _create_service(self, service_type: str | None, description: str | None) -> dict[str, Any]:
        name = self.new_name()
        return self._post(
            "service",
            {
                "name": name,
                "type": service_type or "osbench_test_type",
                "description": description or name,
                "enabled": True,
            },
        )

    @action_timer("keystone_v3.create_ec2creds")
    def _create_ec2(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cloud.document(
            "POST", "keystone", self._ec2, json={"tenant_id": self.cloud.project_id}
        )["credential"]
        return found

    def _list(self, what: str) -> list[dict[str, Any]]:
        with ActionTimer(self, f"keystone_v3.list_{what}"):
            found: list[dict[str, Any]] = self.admin.document("GET", "keystone", what)[what]
        return found

    def _get(self, what: str, identity: str) -> None:
        with ActionTimer(self, f"keystone_v3.get_{what}"):
            self.admin.document("GET", "keystone", f"{what}s/{identity}")

    def _post(self, what: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.document(
            "POST", "keystone", f"{what}s", json={what: dict(fields)}
        )[what]
        return found

    def _assignment(self, role: str, user: str, project: str) -> str:
        return f"projects/{project}/users/{user}/roles/{role}"

    @property
    def _ec2(self) -> str:
        return f"users/{self.cloud.user_id}/credentials/OS-EC2"

    def _domain(self, name: str | None) -> str:
        return str(self.context["domains"][name or _DEFAULT])


def _check(args: Mapping[str, Any]) -> None:
    for place, names in _TAKEN.items():
        for name in sorted(set(args.get(place) or {}) - set(names)):
            raise DeploymentError(
                f"{place} cannot have {name}: use only {', '.join(names)}; osbench chooses the "
                "names of new objects, and lists of assigned roles lack a new role"
            )
    refused = [name for name in _NAMES if name in (args.get("update_user_kwargs") or {})]
    if refused:
        raise DeploymentError(f"update_user_kwargs must not change {', '.join(refused)}; remove it")
