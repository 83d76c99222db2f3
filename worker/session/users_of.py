"""The plan of a workload's virtual users, from its specification."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from osbench.common.plugin.scenario import Scenario, VirtualUser
from osbench.common.ports import threads as threading
from osbench.common.protocol.messages import Specification
from osbench.worker.engine.users.pacing import thinking
from osbench.worker.engine.users.user_plan import UserPlan
from osbench.worker.http.user.request_base import Bases, Reach
from osbench.worker.session.worker_cloud import worker_cloud


def users_of(
    specification: Specification,
    scenario: type[Scenario],
    context: Mapping[str, Any],
    *,
    is_coroutine: bool,
) -> UserPlan:
    """Return the plan of a workload's virtual users: rows of data, think times, HTTP sessions.

    `context`: of the workload. `is_coroutine`: sessions are for users in an event loop. If the
    task's `http` names a service of the catalogue, OpenStack users are logged in here: raises
    PluginError, DeploymentError, AuthenticationFailed, ConnectionError and TimeoutError.
    """
    wish = specification.users
    run = specification.run
    return UserPlan.of(
        scenario,
        rows=wish.get("rows", ()),
        order=wish.get("order", "sequential"),
        unique=wish.get("unique", False),
        seed=f"{run}/{specification.workload}/users",
        think=thinking(specification.think),
        open_http=_sessions(specification, scenario, context, is_coroutine=is_coroutine),
    )


def _sessions(
    specification: Specification,
    scenario: type[Scenario],
    context: Mapping[str, Any],
    *,
    is_coroutine: bool,
) -> Callable[[VirtualUser], Any]:
    """Return a function that opens the HTTP session of a virtual user.

    If the task's `http` names a service, the users are logged in here. HTTP clients are made here
    if the task has `http` or the scenario seems to need them, else at the first session.
    """
    wish = specification.http
    service = wish.get("service", "")
    reach = worker_cloud().reach(service, specification.scenario, context) if service else None
    lock = threading.Lock()
    made: list[Callable[[VirtualUser], Any]] = []

    def opened(user: VirtualUser) -> Any:
        with lock:
            if not made:
                made.append(_opener(specification, context, reach, is_coroutine=is_coroutine))
        return made[0](user)

    if wish or _names_http(scenario):
        # in the first iteration the import would hold an event loop up
        made.append(_opener(specification, context, reach, is_coroutine=is_coroutine))
    return opened


def _names_http(scenario: type[Scenario]) -> bool:
    """Return whether a method of the scenario's class, inherited or not, uses the name `http`.

    Uses in other functions, and in `Scenario` itself, are not seen.
    """
    functions = [one for _, one in inspect.getmembers(scenario, inspect.isfunction)]
    return any(
        "http" in one.__code__.co_names
        for one in functions
        if one.__module__ != Scenario.__module__
    )


def _opener(
    specification: Specification,
    context: Mapping[str, Any],
    reach: Reach | None,
    *,
    is_coroutine: bool,
) -> Callable[[VirtualUser], Any]:
    # the clients are slow to import, and many scenarios make no request
    from osbench.worker.http.http_clients import HttpClients  # noqa: PLC0415
    from osbench.worker.http.user.http_session import HttpSession, LoopHttpSession  # noqa: PLC0415

    clients = HttpClients.of_workload(specification.run, context)
    bases = Bases(specification.http, reach)
    kind = LoopHttpSession if is_coroutine else HttpSession
    return lambda user: kind(clients, bases.of(user.number))
