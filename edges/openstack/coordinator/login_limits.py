"""Finds parts of a task that the credentials of a deployment record do not allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError, Problem
from osbench.common.plugin.plugin_names import NATIVE, parse_name
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task, Workload
from osbench.coordinator.task.taskfile.places import scenario_place, uses
from osbench.edges.openstack.common.cloud_users import CHOSEN, chosen_users, makes_users

#: Contexts that act as the administrator; `users` only if it makes some.
_CONTEXTS = ("users", "quotas", "roles")
#: Codes that a login uses up.
_USED_UP = frozenset({"v3totp", "v3oidcauthcode", "v3oidcdeviceauthz", "v3websso"})
#: Scenarios that log in in each iteration.
_LOGINS = ("Authenticate.", "KeystoneBasic.authenticate_user_and_validate_token")
#: Role that Keystone's own policy requires to make users, projects and roles.
_ADMIN = "admin"
#: Timeout of a request, seconds.
_REQUEST_S = 30.0


def login_limits(task: Task, plugins: Plugins, deployment: Deployment | None) -> list[Problem]:
    """Return the problems of running a task with a deployment record; no request is made.

    These are users that the record lacks, a missing admin, and one-time codes or browser logins
    with scenarios that log in in each iteration. Empty if the deployment is not of OpenStack.
    """
    if deployment is None or deployment.platform != "openstack":
        return []
    found = list(_unknown_users(task, plugins, deployment))
    if deployment.admin is None:
        found += [
            Problem(
                place, f"{what} needs the admin of the cloud: deployment {deployment.name} has none"
            )
            for place, what in _as_admin(task, plugins, deployment)
        ]
    used_up = [name for name, one in deployment.credentials.items() if _is_used_up(one)]
    if used_up:
        found += [
            Problem(
                place,
                f"logs in in each iteration, and {used_up[0]} can log in once only, by "
                f"{deployment.credentials[used_up[0]].auth_type}",
            )
            for place in _logging_in(task, plugins)
        ]
    return found


def role_limits(task: Task, plugins: Plugins, deployment: Deployment) -> list[Problem]:
    """Return a problem for each context or scenario that needs the role admin, if it is lacking.

    Only for a system admin, else admin, by application credential or trust, which may have fewer
    roles than its user, and if a plug-in needs it: then logs in as this admin. If login fails, that
    is the only problem.
    """
    if deployment.platform != "openstack" or deployment.admin is None:
        return []
    admin = deployment.system_admin or deployment.admin
    wanted = list(_as_admin(task, plugins, deployment))
    if not wanted or not _is_delegated(admin):
        return []
    try:
        roles = _roles(admin)
    except DeploymentError as error:
        return [Problem("", f"deployment {deployment.name}: {error}")]
    if _ADMIN in roles:
        return []
    there = ", ".join(roles) or "none"
    return [
        Problem(
            place,
            f"{what} needs the role {_ADMIN}, and {admin} has {there}: delegate the role, or let "
            "the record list users",
        )
        for place, what in wanted
    ]


def _is_delegated(credential: Credential) -> bool:
    return "applicationcredential" in credential.auth_type or bool(credential.auth.get("trust_id"))


def _roles(credential: Credential) -> list[str]:
    # only clouds need them, and they are slow to import
    from osbench.edges.openstack.common.account import Account  # noqa: PLC0415
    from osbench.edges.openstack.common.request_errors import AuthenticationFailed  # noqa: PLC0415
    from osbench.edges.openstack.common.thread_sessions import ThreadSessions  # noqa: PLC0415

    try:
        granted = Account(credential).token(ThreadSessions(credential, _REQUEST_S)())
    except (AuthenticationFailed, OSError) as error:
        raise DeploymentError(str(error)) from None
    return sorted(str(name) for name in granted.role_names or ())


def _as_admin(task: Task, plugins: Plugins, deployment: Deployment) -> Iterator[tuple[str, str]]:
    """Yield (place in the task, name) of each native plug-in that acts as the admin."""
    for workload in task.workloads:
        scenario = plugins.scenario(workload.scenario)
        for use in uses(workload, task.version):
            name = parse_name(use.named.name).bare
            if use.kind != "context" or name not in _CONTEXTS:
                continue
            if plugins.find(use.kind, use.named.name, beside=scenario).source != NATIVE:
                continue
            config: Any = use.named.config or {}
            if name == "users" and (CHOSEN in config or not makes_users(config, deployment)):
                continue
            yield use.place, f"context {use.named.name}"
        needs = getattr(getattr(scenario.cls, scenario.method, None), "needs", None)
        if needs is not None and needs.admin:
            yield scenario_place(workload, task.version), f"scenario {scenario.name}"


def _unknown_users(task: Task, plugins: Plugins, deployment: Deployment) -> Iterator[Problem]:
    for workload in task.workloads:
        scenario = plugins.scenario(workload.scenario)
        for use in uses(workload, task.version):
            if (use.kind, parse_name(use.named.name).bare) != ("context", "users"):
                continue
            if plugins.find("context", use.named.name, beside=scenario).source == NATIVE:
                try:
                    chosen_users(use.named.config or {}, deployment)
                except DeploymentError as error:
                    yield Problem(f"{use.place}.{CHOSEN}", str(error))


def _is_used_up(credential: Credential) -> bool:
    methods = credential.auth.get("auth_methods") or ()
    return not _USED_UP.isdisjoint({credential.auth_type, *methods})


def _logging_in(task: Task, plugins: Plugins) -> Iterator[str]:
    for workload in task.workloads:
        if _logs_in(workload, plugins):
            yield scenario_place(workload, task.version)


def _logs_in(workload: Workload, plugins: Plugins) -> bool:
    if plugins.scenario(workload.scenario).source != NATIVE:
        return False
    named = workload.scenario.startswith(_LOGINS)
    return named or workload.args.get("session") == "per_iteration"
