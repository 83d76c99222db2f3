"""Access of contexts to the cloud: as its administrator, and as one user of each project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from osbench.common.deployment.credential import Credential
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.ports import clock as time
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.api_version import ApiVersion
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.cloud_users import (
    CloudUser,
    by_project,
    cloud_users,
    openstack_of,
)
from osbench.edges.openstack.common.login import state_of
from osbench.edges.openstack.common.login_gate import LoginGate
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions
from osbench.edges.openstack.coordinator.resources import Kind, beginning_with

T = TypeVar("T")
R = TypeVar("R")

#: Timeout of a request, seconds.
TIMEOUT_S = 120.0
#: Concurrent requests, unless a context says otherwise.
AT_ONCE = 8
#: Pauses before retries after transient errors, seconds.
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
#: Transient client errors: locked, too early, too many requests.
TRANSIENT = frozenset({423, 425, 429})


class CloudAccess:
    """Access of one context to the cloud: clients of administrator and users, parallel requests.

    `who`: name of the context, for messages, or words such as "the command seed". Raises
    DeploymentError if there is no deployment, or it is not of OpenStack. `timeout_s`: longest wait
    for data.
    """

    def __init__(
        self, environment: ContextEnvironment, who: str, timeout_s: float = TIMEOUT_S
    ) -> None:
        # commands have no single word
        self._who = who if " " in who else f"context {who}"
        self.deployment: Deployment = openstack_of(environment.deployment, self._who)
        self._environment = environment
        self._timeout_s = timeout_s
        self._gate = LoginGate()

    @property
    def beginning(self) -> str:
        """Return the prefix of names of all resources that this workload's contexts make."""
        return resource_names.of_contexts(self._environment.run, self._environment.workload)

    @property
    def iterations(self) -> str:
        """Return the prefix of names of all resources that this workload's iterations make."""
        return resource_names.of_iterations(self._environment.run, self._environment.workload)

    @cached_property
    def session(self) -> ThreadSessions:
        """Return a callable that returns the calling thread's HTTP session."""
        return ThreadSessions(self.credential, self._timeout_s)

    @property
    def credential(self) -> Credential:
        """Return the credential of the record's administrator; without one, its first user's.

        Raises DeploymentError if the record has neither.
        """
        found = self.deployment.admin or next(iter(self.deployment.users), None)
        if found is None:
            raise DeploymentError(
                f"deployment {self.deployment.name} has neither users nor admin; add one of them "
                "to its record"
            )
        return found

    @cached_property
    def admin(self) -> Cloud:
        """Return a client that acts as the administrator of the cloud; the same at each call.

        Raises DeploymentError if the deployment record has no administrator.
        """
        if self.deployment.admin is None:
            raise DeploymentError(
                f"{self._who} needs the admin of the cloud; add admin to the record of "
                f"deployment {self.deployment.name}"
            )
        system = self.deployment.system_admin
        return self.cloud(Account(self.deployment.admin, gate=self._gate, system=system))

    @property
    def users(self) -> list[CloudUser]:
        """Return the users that iterations act as.

        They are of the context `users` if it was set up, else of the deployment record; if it has
        only an administrator, that one. Raises DeploymentError if there is none.
        """
        return cloud_users(self._environment.context, self.deployment)

    @cached_property
    def projects(self) -> list[Cloud]:
        """Return one client per project, acting as the first user of the project in `users`.

        In the order of these users; the same clients at each call. Raises DeploymentError as
        `users`.
        """
        firsts = [several[0] for several in by_project(self.users)]
        return [self.cloud(Account(one.credential, one.state, gate=self._gate)) for one in firsts]

    @cached_property
    def each_user(self) -> list[Cloud]:
        """Return one client per user that iterations act as, in the order of `users`.

        The same clients at each call. Raises DeploymentError as `users`.
        """
        return [
            self.cloud(Account(one.credential, one.state, gate=self._gate)) for one in self.users
        ]

    def owners(self, kind: Kind) -> list[Cloud]:
        """Return the clients whose lists of objects of `kind` together contain all of them.

        The administrator for kinds of the whole cloud, each user for kinds that belong to users,
        else one user per project.
        """
        if kind.everywhere:
            return [self.admin]
        return self.each_user if kind.personal else self.projects

    def objects(self, kind: Kind, beginning: str) -> dict[str, tuple[Cloud, Mapping[str, Any]]]:
        """Return the objects of a kind by id: a client that sees the object, and the object.

        Only names with the prefix `beginning` are requested, but a service may ignore the prefix.
        Raises the errors of `Cloud.request`.
        """
        found = self.each(
            f"looking for {kind.name}",
            self.owners(kind),
            lambda cloud: [(cloud, one) for one in beginning_with(kind, cloud, beginning)],
        )
        # public objects are listed in every project
        return {kind.identity(one): (cloud, one) for some in found for cloud, one in some}

    def cloud(self, account: Account) -> Cloud:
        """Return a new client that acts as `account`; no request is made.

        API versions are from the deployment record; versions of the context `api_versions` override
        them.
        """
        wished = self._environment.context.get("api_versions", {})
        versions = {**self.deployment.api_versions, **wished}
        return Cloud(
            account,
            self.session,
            {name: ApiVersion(**wish) for name, wish in versions.items()},
        )

    def with_tokens(self, users: Iterable[CloudUser], at_once: int = AT_ONCE) -> list[CloudUser]:
        """Log in as each user again; return copies of `users` with user id, project id and token.

        In the same order, by up to `at_once` threads. New tokens include roles assigned since the
        last login. A credential that holds a token (`state`) keeps it.
        """

        def authenticated(user: CloudUser) -> CloudUser:
            account = Account(user.credential, gate=self._gate)
            granted = account.token(self.session())
            return replace(
                user,
                user_id=str(granted.user_id),
                project_id=str(granted.project_id),
                state=state_of(account.login, user.credential),
            )

        return self.each("users authenticated", users, authenticated, at_once)

    def each(
        self, what: str, items: Iterable[T], work: Callable[[T], R], at_once: int = AT_ONCE
    ) -> list[R]:
        """Call `work` for each item in up to `at_once` threads; return the results in item order.

        `what` names the operation in the progress display. A call is repeated up to 4 times after
        transient errors, so `work` must be repeatable. After another or a fifth error no further
        call begins, and the error is raised once the calls in progress have ended.
        """
        return call_each(self._environment.tell, what, items, work, at_once)


def call_each(
    tell: Callable[[str, int, int], None],
    what: str,
    items: Iterable[T],
    work: Callable[[T], R],
    at_once: int = AT_ONCE,
) -> list[R]:
    """Call `work` for each item in up to `at_once` threads, as `CloudAccess.each` does.

    `tell` gets the progress: `what`, calls done, calls planned.
    """
    planned: Sequence[T] = list(items)
    done = 0
    with ThreadPoolExecutor(at_once, thread_name_prefix="context") as pool:
        futures = [pool.submit(with_retries, work, item) for item in planned]
        left: Any = set(futures)
        while left:
            over, left = wait(left, timeout=0.5, return_when=FIRST_EXCEPTION)
            if any(future.exception() for future in over):
                pool.shutdown(cancel_futures=True)
                break
            done += len(over)
            if len(planned) > 1:
                tell(what, done, len(planned))
    failed = [future for future in futures if not future.cancelled() and future.exception()]
    for future in failed:
        future.result()
    return [future.result() for future in futures]


def with_retries(work: Callable[[T], R], item: T) -> R:
    """Return `work(item)`; after a transient error call again, after each pause of `PAUSES_S`.

    Transient are statuses from 500 on or in `TRANSIENT`, connection errors and timeouts. Raises
    other exceptions at once, and the error of the last call.
    """
    for pause_s in PAUSES_S:
        try:
            return work(item)
        except (RequestFailed, AuthenticationFailed) as error:
            if error.status < 500 and error.status not in TRANSIENT:
                raise
        except (ConnectionError, TimeoutError):
            pass
        time.sleep(pause_s)
    return work(item)
