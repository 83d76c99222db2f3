"""The cloud users of a workload: created by a context, or taken from the deployment record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError

#: Keys under which the context `users` stores what it made.
USERS, CHOICE = "users", "user_choice_method"
#: Key under which the context `cleanup` stores the key that marks names given by iterations.
NAMES_KEY = "names_key"

RANDOM, ROUND_ROBIN = "random", "round_robin"
#: Keys of the context `users` that ask for new ones, and the key that chooses among existing ones.
NEW_USERS = ("tenants", "users_per_tenant")
CHOSEN = "name"


@dataclass(frozen=True, kw_only=True)
class CloudUser:
    """A cloud user in a project, as contexts store it; ids are "" until they are known."""

    credential: Credential
    user_id: str = ""
    project_id: str = ""
    #: A token (`login.state_of`), or "".
    state: str = ""
    #: Made for the run, and removed after it.
    temporary: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the user as a dict of msgpack types; it has the password and the token."""
        credential = self.credential
        plugin = {"auth_type": credential.auth_type, "auth": dict(credential.auth)}
        return {
            "username": credential.username,
            "password": credential.password,
            "project_name": credential.project_name,
            "user_domain_name": credential.user_domain_name,
            "project_domain_name": credential.project_domain_name,
            "id": self.user_id,
            "project_id": self.project_id,
            "state": self.state,
            "temporary": self.temporary,
            **(plugin if credential.auth_type else {}),
        }


def cloud_user_of(kept: Mapping[str, Any], deployment: Deployment) -> CloudUser:
    """Return the user of a dict that `to_dict` made.

    All else, such as address and region, is from the admin of `deployment`, or its first user.
    """
    like = deployment.admin or deployment.users[0]
    return CloudUser(
        credential=replace(
            like,
            auth_type=kept.get("auth_type", ""),
            auth=kept.get("auth", {}),
            state="",
            username=kept["username"],
            password=kept["password"],
            project_name=kept["project_name"],
            user_domain_name=kept["user_domain_name"],
            project_domain_name=kept["project_domain_name"],
        ),
        user_id=kept["id"],
        project_id=kept["project_id"],
        state=kept["state"],
        temporary=kept["temporary"],
    )


def cloud_users(context: Mapping[str, Any], deployment: Deployment) -> list[CloudUser]:
    """Return the users for iterations: from the context `users`, else the record's, else its admin.

    `context`: results of the contexts, by key. Raises DeploymentError if the record has neither
    users nor admin.
    """
    if context.get(USERS):
        return [cloud_user_of(kept, deployment) for kept in context[USERS]]
    admin = (deployment.admin,) if deployment.admin else ()
    found = deployment.users or admin
    if not found:
        raise DeploymentError(
            f"deployment {deployment.name} has neither users nor admin: add one of them to its "
            "record"
        )
    return [CloudUser(credential=credential) for credential in found]


def makes_users(config: Mapping[str, Any], deployment: Deployment) -> bool:
    """Return whether the context `users` with this `config` creates users for the run.

    If not, it takes the record's users. True if the record has none, or `config` has a key of
    NEW_USERS.
    """
    return not deployment.users or any(key in config for key in NEW_USERS)


def chosen_users(config: Mapping[str, Any], deployment: Deployment) -> list[Credential]:
    """Return the users of the record that the context `users` takes, in the record's order.

    All, unless the key `name` of `config` names some. Raises DeploymentError if a named user is not
    in the record.
    """
    named = config.get(CHOSEN)
    if named is None:
        return list(deployment.users)
    wanted = [named] if isinstance(named, str) else list(named)
    there = {one.login_name for one in deployment.users}
    missing = [one for one in wanted if one not in there]
    if missing:
        raise DeploymentError(
            f"deployment {deployment.name} has no user {', '.join(missing)}; add one, or choose "
            f"from {', '.join(sorted(there)) or 'none'}"
        )
    return [one for one in deployment.users if one.login_name in wanted]


def by_project(users: Sequence[CloudUser]) -> list[list[CloudUser]]:
    """Return the users in one list per project, in the order of each project's first user."""
    projects: dict[Any, list[CloudUser]] = {}
    for user in users:
        credential = user.credential
        key = user.project_id or credential.project_key
        projects.setdefault(key, []).append(user)
    return list(projects.values())


def turn(iteration: int, projects: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """Return the indexes, from 0, of the project and of its user for an iteration (from 1).

    Round robin: successive iterations use successive projects, and in each the next user.
    """
    step = iteration - 1
    project = step % len(projects)
    return project, step // len(projects) % len(projects[project])


def openstack_of(deployment: Deployment | None, who: str) -> Deployment:
    """Return `deployment` unchanged; raise DeploymentError if it is None or not an OpenStack.

    `who`: a plug-in that needs the cloud, for the message.
    """
    if deployment is None or deployment.platform != "openstack":
        raise DeploymentError(
            f"{who} needs a deployment of OpenStack: make one with `osbench-coord deployment "
            "create`, or name one with --deployment"
        )
    return deployment
