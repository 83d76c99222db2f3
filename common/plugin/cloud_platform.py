"""The interface of clouds: all that the coordinator asks of the cloud of a deployment record.

A cloud is a class without arguments and an entry point `osbench.cloud` with the name of its
platform. It is loaded only for a record of that platform: the platform `osbench`, which is services
without Keystone, has none. Workers ask `osbench.worker.session.worker_cloud`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from osbench.common.deployment.record import Deployment
from osbench.common.errors import Problem
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.entry_points import load_object
from osbench.common.plugin.left_behind import LeftBehind
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task

#: The platform of records with a cloud; its entry point has this name.
OPENSTACK = "openstack"


@dataclass(frozen=True, kw_only=True)
class NewRecord:
    """A new deployment record that was checked and is not yet stored, with notes for the user."""

    deployment: Deployment
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check of a deployment, such as a login or the trace store, for the user."""

    #: The thing that was checked: admin, users[0], profiler key, trace store.
    subject: str
    user: str = ""
    project: str = ""
    #: None if there was nothing to check.
    ok: bool | None
    detail: str
    #: It works, but the detail needs attention.
    warning: bool = False


class CloudCheck(Protocol):
    """A check of the cloud of one record. Errors are findings, not raised."""

    def logins(self) -> Iterator[Finding]:
        """Log in with each credential of the record; yield a finding for each, and on the region.

        Called once, before `services`.
        """

    def services(self) -> Iterator[Finding]:
        """Check the services of the catalogue as the first user that got a token.

        Yields a finding for each; nothing if there was no token.
        """


@dataclass(frozen=True, kw_only=True)
class SingleLogins:
    """A deployment with tokens for credentials that can log in only once, and notes for users."""

    deployment: Deployment
    #: When each of these tokens ends.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """A resource found by `OrphanSearch`: its name is exactly as osbench or Rally gives names."""

    service: str
    #: Of what kind, in the plural.
    kind: str
    name: str
    identity: str
    run: str
    #: Seconds since 1970: as the service says, else when the run began; None if neither is known.
    created_at: float | None
    #: Name of the orphaned project that it is in; "" for other projects.
    project: str = ""


@dataclass(kw_only=True)
class FoundOrphans:
    """The result of a search for resources of old runs: removable ones, younger ones, problems."""

    #: Resources that may be removed, by run, the oldest run first.
    by_run: dict[str, list[Orphan]] = field(default_factory=dict)
    #: Runs in `by_run` without any resource that has a time of creation.
    ageless: list[str] = field(default_factory=list)
    #: Number of resources of runs that are younger.
    young: dict[str, int] = field(default_factory=dict)
    #: Searches that failed, and why.
    problems: list[str] = field(default_factory=list)
    #: Kinds that only an administrator could search.
    unseen: list[str] = field(default_factory=list)


class OrphanSearch(Protocol):
    """A search for resources in one cloud that runs left, and their removal on request."""

    def find(self, before_at: float) -> FoundOrphans:
        """Search the cloud for resources with names of runs; nothing is removed.

        Runs whose newest resource is older than `before_at`, seconds since 1970 UTC, are in
        `by_run`, the oldest first, and those without any time; of younger runs only the number of
        resources. Raises DeploymentError if login is refused, OSError if the cloud is unreachable.
        """

    def remove(self, orphans: Sequence[Orphan]) -> list[str]:
        """Remove the given resources; return messages on resources that are left, [] for none."""


class CloudPlatform(Protocol):
    """The cloud of deployment records of one platform, as the coordinator sees it.

    The module of the entry point imports only this interface at its top; methods import the rest.
    """

    def record_of_environment(self, name: str, environ: Mapping[str, str]) -> NewRecord:
        """Make a record from environment variables (OS_..., OSPROFILER_...) and check it.

        A note lists variables without effect. Raises DeploymentError if variables are missing or
        the record is invalid.
        """

    def record_of_cloud(
        self, name: str, cloud: str, region: str | None, environ: Mapping[str, str]
    ) -> NewRecord:
        """Make a record from a cloud of clouds.yaml and check it.

        `region`: None for the cloud's first. `environ`: has OSProfiler's key and store. Raises
        DeploymentError if the cloud is unknown or the record is invalid.
        """

    def record_problems(self, deployment: Deployment) -> list[str]:
        """Return messages on credentials whose options are wrong, by place; sends no request."""

    def check(
        self, deployment: Deployment, request_s: float, until: float, late: str
    ) -> CloudCheck:
        """Return a check of the deployment, which sends no request yet.

        `request_s`: timeout of a request. `until`: deadline, monotonic seconds. `late`: detail of a
        finding without a result by then.
        """

    def single_logins(self, deployment: Deployment, lasts_s: float | None) -> SingleLogins:
        """Log in with each credential that can log in once only (a token or a one-time code).

        Returns the deployment with the tokens, which coordinator and workers share. `lasts_s`:
        planned duration of the load, None if unknown; a note warns if a token ends before. Raises
        DeploymentError if a login fails.
        """

    def login_problems(self, task: Task, plugins: Plugins, deployment: Deployment) -> list[Problem]:
        """Return problems of running a task with the credentials of a record; sends no request."""

    def cloud_problems(self, task: Task, plugins: Plugins, deployment: Deployment) -> list[Problem]:
        """Return the problems of running a task in the cloud: roles, services, names, quotas.

        Sends requests. A failing login or request is returned as a problem.
        """

    def context(self) -> dict[str, Any]:
        """Return keys for the context of iterations from the configuration of this host.

        Raises ConfigError if the configuration is invalid.
        """

    def remove_left(self, left: LeftBehind, environment: ContextEnvironment) -> None:
        """Remove resources that a context has left behind; return once none of them is left.

        Raises ContextError, with the command that removes them, if they cannot be removed.
        """

    def orphans(self, deployment: Deployment, *, rally: bool) -> OrphanSearch:
        """Return a search for resources of osbench's runs, or of Rally's tasks; sends nothing."""


def cloud_of(deployment: Deployment | None) -> CloudPlatform | None:
    """Return the cloud of a deployment; None without a deployment, and for services without cloud.

    Raises PluginError if the platform is not installed.
    """
    if deployment is None or deployment.platform != OPENSTACK:
        return None
    return installed_cloud()


def installed_cloud() -> CloudPlatform:
    """Return the cloud that records can be made of; raises PluginError if it is not installed."""
    return cast(CloudPlatform, load_object("cloud", OPENSTACK)())
