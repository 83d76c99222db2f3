"""Finds parts of a task that a cloud does not support: services, named objects, quotas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError, Problem
from osbench.common.plugin.plugin_names import NATIVE, parse_name
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Runner
from osbench.common.task import Task, Workload
from osbench.coordinator.task.taskfile.places import (
    args_place,
    inside,
    runner_place,
    scenario_place,
    uses,
)
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.api_version import ApiVersion
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.cloud_users import chosen_users, makes_users
from osbench.edges.openstack.common.object_lists import require, sought
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions

#: Timeout of a request, seconds.
_REQUEST_S = 30.0
#: Contexts that may make the object that a scenario names, by its kind.
_MAKERS = {"flavor": "flavors", "image": "images", "volume type": "volume_types"}
#: Arguments with the number of objects that an iteration makes at once.
_NUMBERS = ("count", "number_instances")
#: Path of a project's quotas in Nova and Cinder, and its suffix for the quotas of new projects.
_QUOTAS, _OF_NEW = "os-quota-sets", "/defaults"


def cloud_limits(task: Task, plugins: Plugins, deployment: Deployment) -> list[Problem]:
    """Return the problems of running a task in a cloud, found by requests to the cloud.

    These are missing services, unknown objects, and too low quotas: of a workload the first kind
    that is found. Logs in as the first user that iterations act as, or as the admin if users are to
    be made. If a login or request fails, that is the only problem. Empty if the deployment is not
    of OpenStack, or no scenario declares needs.
    """
    asking = [one for one in task.workloads if _needs(one, plugins) is not None]
    if deployment.platform != "openstack" or not asking:
        return []

    try:
        return [
            problem
            for workload in asking
            for problem in _Look(workload, task.version, plugins, deployment).problems()
        ]
    except (AuthenticationFailed, DeploymentError, RequestFailed, OSError) as error:
        return [Problem("", f"deployment {deployment.name}: {error}")]


def _needs(workload: Workload, plugins: Plugins) -> Any:
    """Return the needs in a cloud that a native scenario declares; None for others."""
    scenario = plugins.scenario(workload.scenario)
    if scenario.source != NATIVE:
        return None
    return getattr(getattr(scenario.cls, scenario.method, None), "needs", None)


class _Look:
    """The check of one workload against the cloud; its client has not logged in yet."""

    def __init__(
        self, workload: Workload, version: int, plugins: Plugins, deployment: Deployment
    ) -> None:
        self._workload = workload
        self._version = version
        self._plugins = plugins
        self._deployment = deployment
        self._scenario = plugins.scenario(workload.scenario)
        self._needs = _needs(workload, plugins)
        #: Configurations by the names of contexts, without their platforms.
        self._contexts = {
            **self._scenario.context,
            **{parse_name(one.name).bare: one.config for one in workload.contexts},
        }
        self._cloud = self._client()

    def problems(self) -> list[Problem]:
        """Return missing services; without any, unknown names; without any, too low quotas.

        Raises DeploymentError, AuthenticationFailed, RequestFailed or OSError if requests fail.
        """
        return (
            list(self._missing_services())
            or list(self._missing_names())
            or list(self._low_quotas())
        )

    def _client(self) -> Cloud:
        deployment = self._deployment
        users = [] if self._makes_projects() else self._users()
        credential = users[0] if users else deployment.admin
        if credential is None:
            raise DeploymentError("it has no admin, who makes users; add one to it")
        wished = self._contexts.get("api_versions") or {}
        versions = {**deployment.api_versions, **wished}
        return Cloud(
            Account(credential, system=deployment.system_admin),
            ThreadSessions(credential, _REQUEST_S),
            {name: ApiVersion(**wish) for name, wish in versions.items()},
        )

    # services

    def _missing_services(self) -> Iterator[Problem]:
        place = scenario_place(self._workload, self._version)
        wanted = [(place, f"scenario {self._scenario.name}", one) for one in self._needs.services]
        for use in uses(self._workload, self._version):
            if use.kind == "context":
                found = self._plugins.find("context", use.named.name, beside=self._scenario)
                service = getattr(found.cls, "SERVICE", "") if found.source == NATIVE else ""
                if service:
                    wanted.append((use.place, f"context {use.named.name}", service))
        for where, what, service in wanted:
            try:
                self._cloud.address(service)
            except DeploymentError as error:
                yield Problem(where, f"{what} needs {service}: {error}")

    # names

    def _missing_names(self) -> Iterator[Problem]:
        place = args_place(self._workload, self._version)
        for argument, kind in self._declared("OBJECTS").items():
            given = self._workload.args.get(argument)
            if given and _MAKERS.get(kind) not in self._contexts:
                try:
                    require(self._cloud, kind, given)
                except DeploymentError as error:
                    yield Problem(inside(place, argument), str(error))

    def _declared(self, name: str) -> dict[str, Any]:
        """Return the mapping `name` of the scenario's class, which adds to its bases' mappings."""
        found: dict[str, Any] = {}
        for cls in reversed(self._scenario.cls.__mro__):
            found |= vars(cls).get(name, {})
        return found

    # quotas

    def _low_quotas(self) -> Iterator[Problem]:
        args = self._workload.args
        held = [one for name, one in self._declared("QUOTAS").items() if args.get(name)]
        at_once = self._at_once() if held else None
        if at_once is None:
            return
        each = max([1, *(args[name] for name in _NUMBERS if isinstance(args.get(name), int))])
        # whichever users they choose, one project has at least so many
        least = each * math.ceil(at_once / self._projects())
        place = runner_place(self._workload, self._version)
        for service, quota in held:
            limits = self._limits(service)
            for name, size in {quota: 1, **self._sizes(service)}.items():
                limit = limits.get(name)
                if isinstance(limit, int) and 0 <= limit < least * size:
                    yield Problem(
                        place,
                        f"needs {least * size} {name} of {service} in a project at once, and the "
                        f"quota is {limit}: raise it by the context quotas, take more tenants of "
                        "the context users, or less concurrency",
                    )

    def _at_once(self) -> int | None:
        """Return how many iterations run at most at the same time; None if unknown or open."""
        named = self._workload.runner
        cls: Any = self._plugins.get("runner", named.name)
        runner: Runner = cls(named.config)
        if runner.OPEN:
            # as many as the service is slow
            return None
        known = [one for one in (runner.planned, runner.concurrency) if one]
        return min(known, default=None)

    def _makes_projects(self) -> bool:
        config = self._contexts.get("users")
        return config is not None and makes_users(config, self._deployment)

    def _users(self) -> list[Credential]:
        """Return the record's users of iterations. Raises DeploymentError for an unknown one."""
        return chosen_users(self._contexts.get("users") or {}, self._deployment)

    def _projects(self) -> int:
        if self._makes_projects():
            return int(self._contexts["users"].get("tenants", 1))
        return len({one.project_key for one in self._users()}) or 1

    def _sizes(self, service: str) -> dict[str, int]:
        """Return how much of each quota one object uses, `ram` in MB, as far as that is known.

        For Nova by the flavor, unless the context `flavors` makes flavors; for Cinder `gigabytes`.
        """
        args = self._workload.args
        flavor = args.get("flavor")
        if service == "nova" and flavor and "flavors" not in self._contexts:
            path = f"flavors/{sought(self._cloud, 'flavor', flavor)}"
            found = self._cloud.document("GET", "nova", path)["flavor"]
            return {"cores": int(found["vcpus"]), "ram": int(found["ram"])}
        size = args.get("size") if service == "cinder" else None
        least = size.get("min") if isinstance(size, Mapping) else size
        return {"gigabytes": least} if isinstance(least, int) else {}

    def _limits(self, service: str) -> Mapping[str, Any]:
        """Return the limits of quotas by name, -1 for none: the context's, else the cloud's.

        If projects are to be made, of new ones. Without the cloud's if it refuses to show them.
        """
        path = f"{_QUOTAS}/{self._cloud.project_id}{_OF_NEW if self._makes_projects() else ''}"
        response = self._cloud.request("GET", service, path, expected=(200, 403, 404))
        found = response.json()["quota_set"] if response.status_code == HTTPStatus.OK else {}
        return {**found, **(self._contexts.get("quotas") or {}).get(service, {})}
