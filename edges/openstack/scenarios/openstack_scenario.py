"""Base of scenarios that send requests to an OpenStack cloud, and their declaration."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from osbench.common.errors import ConfigError, DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario, configure, pause
from osbench.common.plugin.signature import signature_of
from osbench.common.ports import clock as time
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common import waits as waits_of_clouds
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.cloud_users import NAMES_KEY, openstack_of
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.worker.client import Client
from osbench.edges.openstack.worker.user_selector import UserSelector
from osbench.worker.http.user.request_base import request_limit_s

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PER_USER, PER_ITERATION = "per_user", "per_iteration"

#: Parts of an action that is accepted first and completed later. The polling interval is a tenth
#: of the time waited so far, at least `POLL_S` and at most `POLL_MOST_S`; the name states the
#: resulting error of the measured time, in addition to the duration of one request.
ACCEPTED = "accepted"
READY = "ready (polled: at most 10 % or 0.1 s late)"
POLL_S = 0.1
POLL_MOST_S = 5.0
POLL_SHARE = 0.1
_LEAST_S = 0.001
#: Attribute of a method, set by `waits`.
_WAITS = "_osbench_waits"


@dataclass(frozen=True, kw_only=True)
class ServiceNeeds:
    """The needs of one scenario, as given to `openstack`: services, accounts, contexts."""

    services: tuple[str, ...]
    #: Whether it acts as the administrator, as users, or both.
    admin: bool
    users: bool
    #: Whether its users must have been made for the run.
    temporary: bool
    #: Whether users get tokens before the load.
    warm: bool
    #: Contexts that the task must have for it.
    requires: tuple[str, ...]
    #: What Rally's scenario of this name requests in addition; "" for a login in each iteration.
    less: str
    #: Keys of `WAITS`: the waits that it may have.
    waits: tuple[str, ...]

    @property
    def sleeps(self) -> str:
        """Return in words how long Rally's scenario of this name sleeps; "" without waits."""
        return waits_of_clouds.rally_sleeps(self.waits) if self.waits else ""


def openstack(  # noqa: PLR0913 - one for each need of a scenario
    name: str,
    *,
    takes: Callable[..., Any] | None = None,
    services: tuple[str, ...] = (),
    admin: bool = False,
    users: bool = True,
    temporary: bool = False,
    warm: bool = True,
    cleanup: tuple[str, ...] = (),
    contexts: Mapping[str, Any] = MappingProxyType({}),
    requires: tuple[str, ...] = (),
    less: str = "",
) -> Callable[[F], F]:
    """Return a decorator that makes a method the scenario `name`.

    The scenario has the further arguments `session` and `retries`, and `timeouts` if it has
    `waits`. `takes` is a method that gets the scenario's `**kwargs`: task files give its arguments.
    `services` must be in the catalogue. After the load, resources that iterations left in the
    services of `cleanup` are removed.
    `contexts` are further contexts that it needs, which the task may configure; the contexts that
    it `requires` the task must have. `less` names the requests that only Rally's scenario of this
    name makes. The others are as in `ServiceNeeds`.
    """
    context: dict[str, Any] = dict(contexts)
    if cleanup:
        context["cleanup"] = list(cleanup)
    if temporary:
        context["users"] = {}
    without_waits = ServiceNeeds(
        services=services,
        admin=admin,
        users=users,
        temporary=temporary,
        warm=warm,
        requires=requires,
        less=less,
        waits=(),
    )

    def mark(method: F) -> F:
        needs = dataclasses.replace(without_waits, waits=getattr(method, _WAITS, ()))

        @functools.wraps(method)
        def run(
            self: OpenStackScenario,
            *args: Any,
            session: str = PER_USER,
            retries: int = 0,
            timeouts: Mapping[str, float] = MappingProxyType({}),
            **kwargs: Any,
        ) -> Any:
            self._retries = retries
            self._timeouts = timeouts or {}
            self._act(needs, session)
            return method(self, *args, **kwargs)

        run.__dict__["needs"] = needs
        declared = signature_of(method)
        if takes is not None:
            declared = _with_arguments(declared, signature_of(takes))
            run.__annotations__ = {**takes.__annotations__, **method.__annotations__}
        run.__dict__["__signature__"] = _with_common(declared, waits=bool(needs.waits))
        return configure(name=name, context=context)(run)  # type: ignore[return-value]

    return mark


def waits(*names: str) -> Callable[[F], F]:
    """Return a decorator that names the waits of a scenario, keys of `WAITS`; below `openstack`."""

    def mark(method: F) -> F:
        method.__dict__[_WAITS] = names
        return method

    return mark


def _with_arguments(signature: inspect.Signature, taken: inspect.Signature) -> inspect.Signature:
    """Return `signature` with the arguments of the method `taken` instead of its `**kwargs`.

    Its own arguments of the same names stay.
    """
    instance, *own, _ = signature.parameters.values()
    known = {one.name for one in own}
    merged = [*(one for one in list(taken.parameters.values())[1:] if one.name not in known), *own]
    # arguments without a default come first, and further ones last
    merged.sort(key=lambda one: (one.kind is one.VAR_KEYWORD, one.default is not one.empty))
    return signature.replace(parameters=[instance, *merged])


def _with_common(signature: inspect.Signature, *, waits: bool) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    at = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    added: dict[str, Any] = {"session": PER_USER, "retries": 0}
    if waits:
        added["timeouts"] = None
    parameters[at:at] = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in added.items()
    ]
    return signature.replace(parameters=parameters)


class OpenStackScenario(Scenario):
    """Base of scenarios that send requests as users of a cloud.

    The argument `session` of every scenario is `per_user`, one token for all iterations of a user,
    or `per_iteration`: each iteration first requests a token, which is part of its time. `retries`
    is how often a request is repeated after a response of 429 or 503 with Retry-After; 0 by
    default, so that the service's own behaviour is measured. `timeouts` of a scenario that waits
    are in seconds, by Rally's options (`nova_server_boot_timeout: 60`).
    """

    #: Arguments that mean an object of the cloud, with its kind (`object_lists`).
    OBJECTS: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: Arguments whose scenarios hold an object of a quota for each iteration that runs: the service
    #: and the name of the quota.
    QUOTAS: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType({})

    _retries = 0
    _timeouts: Mapping[str, float] = MappingProxyType({})

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in `retries` and, if it waits, in `timeouts` and rally.conf."""
        retries, timeouts = args.get("retries", 0), args.get("timeouts")
        found = []
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
            found.append(f"retries must be an integer from 0 on, got {retries!r}")
        needs: ServiceNeeds | None = getattr(getattr(cls, method), "needs", None)
        if needs is None or not needs.waits:
            return found
        if timeouts is not None:
            found += waits_of_clouds.problems(timeouts, needs.waits)
        try:
            waits_of_clouds.configured_timeouts()
        except ConfigError as error:
            found.append(str(error))
        return found

    #: Sends requests as the iteration's user, and as the administrator.
    cloud: Client
    admin: Client

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Before the load: get tokens, check that services exist, and call `prepare`.

        For a scenario that `openstack` marks `warm=False` only Keystone's versions are queried.
        Stores the `UserSelector` in `context`. Raises DeploymentError for an invalid argument
        `session` and a missing deployment, account, context, service or temporary user; and errors
        of `prepare`, of authentication and of requests.
        """
        name = context["scenario"].partition("@")[0]
        needs: ServiceNeeds = cls.method(context).needs
        deployment = openstack_of(context.get("deployment"), name)
        wish = context["args"].get("session", PER_USER)
        if wish not in (PER_USER, PER_ITERATION):
            raise DeploymentError(
                f"session of {name} must be {PER_USER} or {PER_ITERATION}, got {wish!r}"
            )
        if needs.temporary and not all(one["temporary"] for one in context["users"]):
            raise DeploymentError(
                f"{name} leaves resources that are removed only with its users; let the context "
                "users make these (users: {tenants: 1})"
            )
        for missing in (one for one in needs.requires if one not in context):
            raise DeploymentError(f"{name} needs the context {missing}: add it to the workload")
        selector = UserSelector(context, deployment, request_limit_s(context))
        context["user_selector"] = selector
        if not needs.warm:
            selector.sessions.discover()
            return
        selector.warm(admin=needs.admin, users=needs.users)
        asking = selector.admin if needs.admin and not needs.users else selector.any_user
        cloud = Cloud(asking, selector.sessions.session, selector.versions)
        for service in needs.services:
            cloud.address(service)
        cls.prepare(context, cloud)

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Look up named objects before the load, for subclasses; here it does nothing.

        `context["args"]` are the workload's arguments; results are stored in `context`. `cloud`
        sends requests as a user, or as the administrator if the scenario acts as that only.
        """

    @classmethod
    def method(cls, context: Mapping[str, Any]) -> Any:
        """Return the decorated method of the workload's scenario, which has its `needs`."""
        return getattr(cls, context["scenario"].partition("@")[0].rpartition(".")[2])

    def new_name(self) -> str:
        """Return a unique name for a new resource, by which the clean-up finds it."""
        context = self.context
        return resource_names.in_iteration(
            context["run"], context["workload"], context["iteration"], context.get(NAMES_KEY, "")
        )

    def checked(self, correct: bool, message: str) -> None:
        """Raise AssertionError with `message`, which fails the iteration, unless `correct`."""
        if not correct:
            raise AssertionError(message)

    def wait_until(self, what: str, wait: str, look: Callable[[], T | None]) -> T:
        """Call `look` again and again until it returns a value other than None; return that value.

        Polling is an action `READY`, with pauses that grow from 0.1 to 5 s. Raises NotReady, which
        names `what`, after the timeout of `wait`, a key of `WAITS`: from the argument `timeouts`,
        else from rally.conf, else Rally's default. Exceptions of `look` are raised at once.
        """
        configured = self.context.get(waits_of_clouds.CONFIGURED_KEY, {})
        limit_s = waits_of_clouds.limit_s(wait, self._timeouts, configured)
        with ActionTimer(self, READY):
            begin = time.monotonic()
            while True:
                found = look()
                if found is not None:
                    return found
                waited_s = time.monotonic() - begin
                if waited_s >= limit_s:
                    option = waits_of_clouds.option_of(wait)
                    raise NotReady(
                        f"{what} is not ready after {limit_s:g} s; see the log of its service, or "
                        f"raise {option}"
                    )
                pause_s = min(max(POLL_S, POLL_SHARE * waited_s), POLL_MOST_S)
                # the last look is at the limit, which a rounded clock must reach
                pause(min(pause_s, max(limit_s - waited_s, _LEAST_S)))

    def as_administrator(self) -> Client:
        """Return a client of the administrator, for scenarios that act as a user otherwise.

        A token is requested at its first request, unless `prepare` has done it. Raises
        DeploymentError if the deployment has no admin.
        """
        selector: UserSelector = self.context["user_selector"]
        return self._client(selector, selector.admin)

    def _act(self, needs: ServiceNeeds, session: str) -> None:
        selector: UserSelector = self.context["user_selector"]
        user, admin = None, None
        if needs.users:
            user = selector.user(self.context["iteration"])
        if needs.admin:
            admin = selector.admin
        if session == PER_ITERATION and needs.warm:
            user, admin = (self._fresh(selector, account) for account in (user, admin))
        if user is not None:
            self.cloud = self._client(selector, user)
        if admin is not None:
            self.admin = self._client(selector, admin)

    def _client(self, selector: UserSelector, account: Account) -> Client:
        return Client(self, selector.sessions, account, selector.versions, self._retries)

    def _fresh(self, selector: UserSelector, account: Account | None) -> Account | None:
        if account is None:
            return None
        fresh = account.fresh()
        with ActionTimer(self, "authenticate"):
            selector.sessions.warm(fresh)
        return fresh


def further_arguments(method: Any, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a method's `**` parameter, and the arguments of `args` that it would take.

    Without such a parameter the name is "", and the method does not know these arguments.
    """
    parameters = signature_of(method).parameters
    taking = next((one.name for one in parameters.values() if one.kind is one.VAR_KEYWORD), "")
    return taking, {key: value for key, value in args.items() if key not in parameters}


def count_problems(args: Mapping[str, Any], *names: str, least: int = 1) -> list[str]:
    """Return a message on each of the named arguments that is not an integer from `least` on."""
    return [
        f"{name} must be an integer from {least} on, got {args[name]!r}"
        for name in names
        if name in args and (not isinstance(args[name], int) or args[name] < least)
    ]


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy without the items whose value is None: services would take null for a value."""
    return {key: value for key, value in values.items() if value is not None}
