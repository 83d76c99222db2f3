"""How contexts access the cloud: as its administrator, and as one user of each project."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import cached_property
from typing import Any, TypeVar

from osbench.common.deployment.record import Credential, Deployment
from osbench.common.errors import DeploymentError
from osbench.common.openstack import resource_names
from osbench.common.openstack.account import Account
from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.cloud_users import CloudUser, by_project, cloud_users, openstack_of
from osbench.common.openstack.error_mapping import AuthenticationFailed
from osbench.common.openstack.request_errors import RequestFailed
from osbench.common.openstack.service_catalogue import ApiVersion
from osbench.common.openstack.thread_sessions import ThreadSessions
from osbench.common.plugin.context import ContextEnvironment

T = TypeVar("T")
R = TypeVar("R")

#: Seconds an answer may take.
TIMEOUT_S = 120.0
#: Requests at the same time, unless a context says otherwise.
AT_ONCE = 8
#: Pauses before another try of what failed by no fault of ours, seconds.
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
#: Refusals that pass: too early, too many, locked.
PASSING = frozenset({423, 425, 429})


class CloudAccess:
    """The cloud of one context. Raises DeploymentError where there is none."""

    def __init__(self, environment: ContextEnvironment, who: str) -> None:
        self.deployment: Deployment = openstack_of(environment.deployment, f"context {who}")
        self._environment = environment
        self._who = who

    @property
    def beginning(self) -> str:
        """Beginning of the names that contexts of this workload give."""
        return resource_names.of_contexts(self._environment.run, self._environment.workload)

    @property
    def iterations(self) -> str:
        """Beginning of the names that its iterations give."""
        return resource_names.of_iterations(self._environment.run, self._environment.workload)

    @cached_property
    def session(self) -> ThreadSessions:
        """Gives each thread its session."""
        return ThreadSessions(self.credential, TIMEOUT_S)

    @property
    def credential(self) -> Credential:
        """The administrator's, else that of the first user."""
        found = self.deployment.admin or next(iter(self.deployment.users), None)
        if found is None:
            raise DeploymentError(f"deployment {self.deployment.name} has neither users nor admin")
        return found

    @cached_property
    def admin(self) -> Cloud:
        """The cloud as its administrator."""
        if self.deployment.admin is None:
            raise DeploymentError(
                f"context {self._who} needs the admin of the cloud, and deployment "
                f"{self.deployment.name} has none"
            )
        return self.cloud(Account(self.deployment.admin))

    @property
    def users(self) -> list[CloudUser]:
        """Who the iterations act as."""
        return cloud_users(self._environment.context, self.deployment)

    @cached_property
    def projects(self) -> list[Cloud]:
        """The cloud as one user of each of their projects."""
        firsts = [several[0] for several in by_project(self.users)]
        return [self.cloud(Account(one.credential, one.state)) for one in firsts]

    def cloud(self, account: Account) -> Cloud:
        """The cloud as somebody."""
        versions = self._environment.context.get("api_versions", {})
        return Cloud(
            account,
            self.session,
            {name: ApiVersion(**wish) for name, wish in versions.items()},
        )

    def each(
        self, what: str, items: Iterable[T], work: Callable[[T], R], at_once: int = AT_ONCE
    ) -> list[R]:
        """Do something for each item, several at the same time; tells how far it is.

        What a service fails with, or refuses for want of time, is tried again: `work` must bear
        it. Anything else that is raised ends it, once those that have begun are over.
        """
        planned: Sequence[T] = list(items)
        done = 0
        with ThreadPoolExecutor(at_once, thread_name_prefix="context") as pool:
            futures = [pool.submit(_persistently, work, item) for item in planned]
            left: Any = set(futures)
            while left:
                over, left = wait(left, timeout=0.5, return_when=FIRST_EXCEPTION)
                if any(future.exception() for future in over):
                    pool.shutdown(cancel_futures=True)
                    break
                done += len(over)
                if len(planned) > 1:
                    self._environment.tell(what, done, len(planned))
        failed = [future for future in futures if not future.cancelled() and future.exception()]
        for future in failed:
            future.result()
        return [future.result() for future in futures]


def _persistently(work: Callable[[T], R], item: T) -> R:
    """Do something again while it fails by no fault of ours."""
    for pause_s in PAUSES_S:
        try:
            return work(item)
        except (RequestFailed, AuthenticationFailed) as error:
            if error.status < 500 and error.status not in PASSING:
                raise
        except (ConnectionError, TimeoutError):
            pass
        time.sleep(pause_s)
    return work(item)
