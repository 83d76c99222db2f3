"""Finds and removes resources of runs whose run directories are gone, by name and age.

Only names exactly as osbench gives them count (`osbench.common.openstack.resource_names`); that
they are osbench's cannot be proved without the key of the run, so a person confirms the list.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.common.openstack.account import Account
from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.request_errors import AuthenticationFailed, RequestFailed
from osbench.common.openstack.resource_names import run_in
from osbench.common.plugin.context import ContextEnvironment
from osbench.coordinator.contexts.cloud_access import CloudAccess
from osbench.coordinator.contexts.resource_cleanup import remove_resources
from osbench.coordinator.contexts.resources import KINDS, Kind, names_of

#: Prefix of all names of osbench.
_BEGINNING = "osb-"
#: Fields with the time of creation.
_CREATED = ("created_at", "created", "creation_time")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
#: They belong to all others, and go last.
_LAST = "keystone"
_ADMINS = ("admin", "member", "_member_")


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """A resource in the cloud whose name is exactly as osbench gives names, found by
    `OrphanSearch`.
    """

    service: str
    #: Of what kind, in the plural.
    kind: str
    name: str
    identity: str
    run: str
    #: Seconds since 1970: as the service says, else when the run began.
    created_at: float


@dataclass(kw_only=True)
class FoundOrphans:
    """The result of a search for resources of old runs: removable ones, younger ones, problems."""

    #: Resources that may be removed, by run, the oldest run first.
    by_run: dict[str, list[Orphan]] = field(default_factory=dict)
    #: Number of resources of runs that are younger.
    young: dict[str, int] = field(default_factory=dict)
    #: Searches that failed, and why.
    problems: list[str] = field(default_factory=list)
    #: Kinds that only an administrator could search.
    unseen: list[str] = field(default_factory=list)


class OrphanSearch:
    """Finds resources in one cloud that osbench's runs left, and removes them on request.

    For `osbench cleanup --orphans`; it needs no run directory.
    """

    def __init__(self, deployment: Deployment) -> None:
        """Prepare a search in the cloud of `deployment`; no request is made.

        Raises DeploymentError if the deployment is not of OpenStack.
        """
        environment = ContextEnvironment(run="", deployment=deployment)
        self._environment = environment
        self._access = CloudAccess(environment, "cleanup --orphans")

    def find(self, before_at: float) -> FoundOrphans:
        """Search the cloud for resources with osbench's names; nothing is removed.

        Runs whose newest resource is older than `before_at`, seconds since 1970 UTC, are in
        `by_run`, the oldest first; of younger runs only the number of resources. Kinds that cannot
        be listed are in `problems` or `unseen`. Raises DeploymentError or AuthenticationFailed if
        login fails.
        """
        access, found = self._access, FoundOrphans()
        access.owners(KINDS["zaqar"][0])[0].account.token(access.session())
        by_run: dict[str, list[Orphan]] = defaultdict(list)
        seen: set[tuple[str, str]] = set()
        for service, several in KINDS.items():
            for kind in several:
                for orphan in self._of_kind(service, kind, found):
                    # some objects are of two kinds
                    if (service, orphan.identity) not in seen:
                        seen.add((service, orphan.identity))
                        by_run[orphan.run].append(orphan)
        for run, orphans in sorted(by_run.items()):
            # a run that goes on elsewhere still makes some
            if max(orphan.created_at for orphan in orphans) < before_at:
                found.by_run[run] = orphans
            else:
                found.young[run] = len(orphans)
        return found

    def remove(self, orphans: Sequence[Orphan]) -> list[str]:
        """Remove the given resources; return messages on resources that are left, empty if all are
        gone.

        In projects to be removed all resources of their runs are removed, too. Objects of Keystone,
        such as projects, are removed last, and only if no other removal failed.
        """
        services = {orphan.service: None for orphan in orphans if orphan.service != _LAST}
        names = {orphan.name for orphan in orphans}
        problems = _removed(self._access, list(services), names)
        at_last = [orphan for orphan in orphans if orphan.service == _LAST]
        projects = [orphan for orphan in at_last if orphan.kind == "projects"]
        runs = {orphan.run for orphan in projects}
        for project in projects:
            problems += self._within(project, runs)
        if at_last and not problems:
            problems = _removed(self._access, [_LAST], {orphan.name for orphan in at_last})
        elif at_last:
            problems.append(f"{len(at_last)} objects of Keystone are left, since they own others")
        return problems

    def _of_kind(self, service: str, kind: Kind, found: FoundOrphans) -> Iterable[Orphan]:
        """Return the resources of a kind that have names of osbench.

        `service`: a key of `KINDS`. Empty, with a note in `found`, if only an administrator can
        list them and there is none, or listing fails. Empty without a note if the cloud lacks the
        service.
        """
        access = self._access
        if kind.everywhere and access.deployment.admin is None:
            found.unseen.append(kind.name)
            return ()
        try:
            access.owners(kind)[0].address(kind.service)
        except DeploymentError:
            # the cloud does not have the service
            return ()
        try:
            objects = access.objects(kind.detailed, _BEGINNING)
        except (RequestFailed, AuthenticationFailed, OSError) as error:
            found.problems.append(f"{kind.name} could not be listed: {error}")
            return ()
        return [
            Orphan(
                service=service,
                kind=kind.name,
                name=name,
                identity=identity,
                run=run_in(name),
                created_at=_created_at(one, run_in(name)),
            )
            for identity, (_, one) in objects.items()
            for name in names_of(one, kind)
            if run_in(name)
        ]

    def _within(self, project: Orphan, runs: Collection[str]) -> list[str]:
        """Remove the objects of `runs` in a project that will be deleted, and its security groups.

        Returns messages on objects that are left. The passwords of the project's users are lost, so
        the administrator is assigned a role in the project, which ends with the project.
        """
        admin = self._access.admin
        credential = admin.account.credential
        if credential.auth_type:
            return [
                f"project {project.name} is left: the admin of the deployment logs in by"
                f" {credential.auth_type}, and cannot look into other projects"
            ]
        try:
            _assign(admin, project.identity)
            domain = _domain_of(admin, project.identity)
            inside = replace(
                credential, project_name=project.name, project_domain_name=domain, state=""
            )
            access = _OneProject(self._environment, Account(inside))
            services = [name for name in KINDS if name != _LAST and access.has(name)]
            problems = _removed(access, services, runs=runs)
            if not problems and access.has("neutron"):
                _remove_security_groups(admin, project.identity)
        except (RequestFailed, AuthenticationFailed, DeploymentError, OSError) as error:
            return [f"project {project.name} is left: {error}"]
        return [f"in project {project.name}: {one}" for one in problems]


class _OneProject(CloudAccess):
    """Access to one project only, as `account`: for removing objects in a project to be deleted."""

    def __init__(self, environment: ContextEnvironment, account: Account) -> None:
        super().__init__(environment, "cleanup --orphans")
        self._only = self.cloud(account)

    def owners(self, kind: Kind) -> list[Cloud]:
        """Return the project's client for kinds that belong to projects or users, [] for other
        kinds.
        """
        return [] if kind.everywhere else [self._only]

    def has(self, service: str) -> bool:
        """Return whether the cloud has the service and its first kind belongs to projects or users.

        `service`: a key of `KINDS`.
        """
        kind = KINDS[service][0]
        try:
            return not kind.everywhere and bool(self._only.address(kind.service))
        except DeploymentError:
            return False


def _removed(
    access: CloudAccess,
    services: Sequence[str],
    names: Collection[str] = (),
    *,
    runs: Collection[str] = (),
) -> list[str]:
    """Remove objects of `services` whose names are in `names` or contain a run of `runs`.

    Returns messages on objects that could not be removed or listed; empty if all are gone.
    """

    def is_ours(name: str) -> bool:
        return name in names or (bool(runs) and run_in(name) in runs)

    try:
        remove_resources(access, services, _BEGINNING, is_ours, settle_s=0.0)
    except ContextError as error:
        return [str(error)]
    return []


def _assign(admin: Cloud, project: str) -> None:
    """Assign the administrator a role in `project` (an id): the first of `_ADMINS` that the cloud
    has.

    Raises DeploymentError if the cloud has none of these roles, RequestFailed if Keystone refuses.
    """
    roles = admin.document("GET", "keystone", "roles")["roles"]
    by_name = {str(role["name"]).lower(): str(role["id"]) for role in roles}
    named = next((name for name in _ADMINS if name in by_name), None)
    if named is None:
        raise DeploymentError(
            f"the cloud has no role {_ADMINS[0]}; create one of {', '.join(_ADMINS)}"
        )
    path = f"projects/{project}/users/{admin.user_id}/roles/{by_name[named]}"
    admin.request("PUT", "keystone", path, expected=(204,))


def _domain_of(admin: Cloud, project: str) -> str:
    """Return the name of the domain of `project` (an id), by two requests to Keystone.

    Raises RequestFailed if project or domain cannot be read.
    """
    found = admin.document("GET", "keystone", f"projects/{project}")["project"]
    domain = admin.document("GET", "keystone", f"domains/{found['domain_id']}")["domain"]
    return str(domain["name"])


def _remove_security_groups(admin: Cloud, project: str) -> None:
    """Delete all security groups of `project` (an id), also its default group.

    Neutron does not delete the default group with its project. Raises RequestFailed if refused.
    """
    params = {"project_id": project}
    groups = admin.document("GET", "neutron", "security-groups", params=params)
    for group in groups["security_groups"]:
        # a service may ignore parameters
        if group.get("project_id", project) == project:
            admin.request(
                "DELETE", "neutron", f"security-groups/{group['id']}", expected=(204, 404)
            )


def _created_at(one: Mapping[str, Any], run: str) -> float:
    """Return when an object was created, seconds since 1970 UTC; never before its run's start.

    `one` is the object as the service describes it. If it has no time of creation, the start of the
    run is returned, which is the beginning of the run's id.
    """
    began_at = _timestamp(run[:15], "%Y%m%d-%H%M%S")
    for name in _CREATED:
        if found := _INSTANT.match(str(one.get(name) or "")):
            return max(began_at, _timestamp(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S"))
    return began_at


def _timestamp(text: str, form: str) -> float:
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
