"""Finds and removes resources of runs whose run directories are gone, by name and age.

Only names exactly as osbench or Rally gives them count (module `resource_names`); their origin
cannot be proved without the key of the run, so a person confirms the list.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.common.plugin.cloud_platform import FoundOrphans, Orphan
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.common.resource_names import rally_task_in, run_in
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.resource_cleanup import remove_resources
from osbench.edges.openstack.coordinator.resources import KINDS, Kind, names_of

#: Fields with the time of creation.
_CREATED = ("created_at", "created", "creation_time")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
#: They belong to all others, and go last.
_LAST = "keystone"
_ADMINS = ("admin", "member", "_member_")
#: Why a project cannot be entered.
_ERRORS = (RequestFailed, AuthenticationFailed, DeploymentError, OSError)


@dataclass(frozen=True, kw_only=True)
class Naming:
    """A way of naming resources, by which resources of a run are found."""

    #: Prefixes of all names, in the order in which their resources are removed.
    beginnings: tuple[str, ...]
    #: Returns the run in a name; "" for names given by others.
    run_in: Callable[[str], str]


OSBENCH = Naming(beginnings=("osb-",), run_in=run_in)
#: Scenarios use what contexts have made.
RALLY = Naming(beginnings=("s_rally_", "c_rally_"), run_in=rally_task_in)


class CloudOrphanSearch:
    """Finds resources in one cloud that osbench's or Rally's runs left; removes them on request.

    For `osbench cleanup --orphans`; it needs no run directory.
    """

    def __init__(self, deployment: Deployment, naming: Naming = OSBENCH) -> None:
        """Prepare a search in the cloud of `deployment`; no request is made.

        Raises DeploymentError if the deployment is not of OpenStack.
        """
        environment = ContextEnvironment(run="", deployment=deployment)
        self._environment = environment
        self._naming = naming
        self._access = CloudAccess(environment, "cleanup --orphans")

    def find(self, before_at: float) -> FoundOrphans:
        """Search the cloud for resources whose names have a run; nothing is removed.

        Runs whose newest resource is older than `before_at`, seconds since 1970 UTC, are in
        `by_run`, in the order of run ids, and so are runs without any time. Of younger runs only
        the number of resources is in `young`. While it looks into a project that a run has left,
        the administrator has a role there. Kinds that cannot be listed are in `problems` or
        `unseen`. Raises DeploymentError if login is refused, OSError if Keystone is unreachable.
        """
        access, found = self._access, FoundOrphans()
        try:
            access.owners(KINDS["zaqar"][0])[0].account.token(access.session())
        except AuthenticationFailed as error:
            name = access.deployment.name
            raise DeploymentError(
                f"deployment {name}: {error}; check it with `osbench-coord deployment check {name}`"
            ) from None
        by_run: dict[str, list[Orphan]] = defaultdict(list)
        seen: set[tuple[str, str]] = set()

        def add(orphans: Iterator[Orphan]) -> None:
            for orphan in orphans:
                # some objects are of two kinds
                if (orphan.service, orphan.identity) not in seen:
                    seen.add((orphan.service, orphan.identity))
                    by_run[orphan.run].append(orphan)

        for service, several in KINDS.items():
            for kind in several:
                add(self._of_kind(access, service, kind, found))
        for orphans in list(by_run.values()):
            if _newest_at(orphans) < before_at:
                for project in [one for one in orphans if one.kind == "projects"]:
                    add(self._inside(project, found))
        for run, orphans in sorted(by_run.items()):
            # a run that goes on elsewhere still makes some
            if _newest_at(orphans) < before_at:
                found.by_run[run] = orphans
            else:
                found.young[run] = len(orphans)
        found.ageless = [
            run
            for run, orphans in found.by_run.items()
            if all(one.created_at is None for one in orphans)
        ]
        return found

    def remove(self, orphans: Sequence[Orphan]) -> list[str]:
        """Remove the given resources; return messages on resources that are left, [] if none is.

        Security groups of projects to be removed are removed, too. Objects of Keystone, such as
        projects, are removed last, and only if no other removal failed.
        """
        at_last = [orphan for orphan in orphans if orphan.service == _LAST]
        elsewhere = [one for one in orphans if not one.project and one.service != _LAST]
        problems = self._remove(self._access, elsewhere)
        for project in [orphan for orphan in at_last if orphan.kind == "projects"]:
            inside = [one for one in orphans if one.project == project.name]
            problems += self._empty(project, inside)
        if at_last and not problems:
            problems = self._remove(self._access, at_last)
        elif at_last:
            problems.append(f"{len(at_last)} objects of Keystone are left, since they own others")
        return problems

    def _of_kind(
        self, access: CloudAccess, service: str, kind: Kind, found: FoundOrphans, project: str = ""
    ) -> Iterator[Orphan]:
        """Yield resources of a kind whose names have a run; none if the cloud lacks the service.

        A note in `found` if only an administrator can list them and there is none, or listing
        fails.
        """
        if kind.everywhere and access.deployment.admin is None:
            found.unseen.append(kind.name)
            return
        try:
            access.owners(kind)[0].address(kind.service)
        except DeploymentError:
            # the cloud does not have the service
            return
        where = f" in project {project}" if project else ""
        for beginning in self._naming.beginnings:
            try:
                objects = access.objects(kind.detailed, beginning)
            except (RequestFailed, AuthenticationFailed, OSError) as error:
                found.problems.append(f"{kind.name} could not be listed{where}: {error}")
                return
            for identity, (_, one) in objects.items():
                for name in names_of(one, kind):
                    if run := self._naming.run_in(name):
                        yield Orphan(
                            service=service,
                            kind=kind.name,
                            name=name,
                            identity=identity,
                            run=run,
                            created_at=_created_at(one, run),
                            project=project,
                        )

    def _inside(self, project: Orphan, found: FoundOrphans) -> Iterator[Orphan]:
        """Yield the resources in an orphaned project; a note in `found` if it cannot be entered."""
        try:
            with self._enter(project) as access:
                for service, several in access.there.items():
                    for kind in several:
                        yield from self._of_kind(access, service, kind, found, project.name)
        except _ERRORS as error:
            found.problems.append(f"project {project.name} could not be searched: {error}")

    def _empty(self, project: Orphan, inside: Sequence[Orphan]) -> list[str]:
        """Remove resources and security groups in a project; return messages on those left."""
        try:
            with self._enter(project) as access:
                problems = self._remove(access, inside)
                if not problems and "neutron" in access.there:
                    neutron.remove_security_groups(self._access.admin, project.identity)
        except _ERRORS as error:
            return [f"project {project.name} is left: {error}"]
        return [f"in project {project.name}: {one}" for one in problems]

    @contextmanager
    def _enter(self, project: Orphan) -> Iterator[_OneProject]:
        """Yield access to a project as the administrator, who has a role in it within the block.

        The passwords of the project's users are lost. Raises exceptions of `_ERRORS`.
        """
        admin = self._access.admin
        credential = admin.account.credential
        if credential.auth_type:
            raise DeploymentError(
                f"the admin of the deployment logs in by {credential.auth_type}, and cannot look"
                " into other projects; give it a password"
            )
        with _assign_role(admin, project.identity):
            inside = replace(
                credential,
                project_name=project.name,
                project_domain_name=_domain_of(admin, project.identity),
                state="",
            )
            yield _OneProject(self._environment, Account(inside))

    def _remove(self, access: CloudAccess, orphans: Sequence[Orphan]) -> list[str]:
        """Remove resources by name, in the order of `KINDS`; return messages on those left."""
        names = {orphan.name for orphan in orphans}
        wanted = {orphan.service for orphan in orphans}
        services = [service for service in KINDS if service in wanted]
        problems = []
        for beginning in self._naming.beginnings:
            if any(name.startswith(beginning) for name in names):
                try:
                    remove_resources(access, services, beginning, names.__contains__, settle_s=0.0)
                except ContextError as error:
                    problems.append(str(error))
        return problems


class _OneProject(CloudAccess):
    """Access to one project only, as `account`: for removing objects in a project to be deleted."""

    def __init__(self, environment: ContextEnvironment, account: Account) -> None:
        super().__init__(environment, "cleanup --orphans")
        self._only = self.cloud(account)

    def owners(self, kind: Kind) -> list[Cloud]:
        return [] if kind.everywhere else [self._only]

    @cached_property
    def there(self) -> dict[str, tuple[Kind, ...]]:
        """Return the services of the cloud with their kinds that belong to projects or users."""
        return {
            service: own
            for service, several in KINDS.items()
            if (own := tuple(kind for kind in several if not kind.everywhere))
            and self._has(own[0].service)
        }

    def _has(self, service: str) -> bool:
        try:
            return bool(self._only.address(service))
        except DeploymentError:
            return False


@contextmanager
def _assign_role(admin: Cloud, project: str) -> Iterator[None]:
    """Assign the administrator a role in `project` (an id) within the block, unless it has it.

    Raises DeploymentError if the cloud has none of `_ADMINS`, RequestFailed if Keystone refuses.
    """
    roles = admin.document("GET", "keystone", "roles")["roles"]
    by_name = {str(role["name"]).lower(): str(role["id"]) for role in roles}
    named = next((name for name in _ADMINS if name in by_name), None)
    if named is None:
        raise DeploymentError(
            f"the cloud has no role {_ADMINS[0]}; create one of {', '.join(_ADMINS)}"
        )
    path = f"projects/{project}/users/{admin.user_id}/roles/{by_name[named]}"
    before = admin.request("HEAD", "keystone", path, expected=(200, 204, 404))
    if before.status_code != HTTPStatus.NOT_FOUND:
        yield
        return
    admin.request("PUT", "keystone", path, expected=(204,))
    try:
        yield
    finally:
        admin.request("DELETE", "keystone", path, expected=(204, 404))


def _domain_of(admin: Cloud, project: str) -> str:
    """Return the name of the domain of `project` (an id). Raises RequestFailed."""
    found = admin.document("GET", "keystone", f"projects/{project}")["project"]
    domain = admin.document("GET", "keystone", f"domains/{found['domain_id']}")["domain"]
    return str(domain["name"])


def _newest_at(orphans: Sequence[Orphan]) -> float:
    """Return when the newest of the resources was created, seconds since 1970; 0 if unknown."""
    return max((one.created_at for one in orphans if one.created_at is not None), default=0.0)


def _created_at(one: Mapping[str, Any], run: str) -> float | None:
    """Return when an object was created, seconds since 1970 UTC; never before its run's start.

    Without a time of creation the start of the run, from its id; None if that has no time.
    """
    began_at = _timestamp(run[:15], "%Y%m%d-%H%M%S") if "-" in run else None
    for name in _CREATED:
        if found := _INSTANT.match(str(one.get(name) or "")):
            created_at = _timestamp(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S")
            return max(created_at, began_at or 0.0)
    return began_at


def _timestamp(text: str, form: str) -> float:
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
