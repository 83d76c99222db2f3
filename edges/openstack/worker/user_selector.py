"""Selects the user of an iteration by its number, and holds the users' tokens."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.network.response_bound import BOUND_KEY, USUAL
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.api_version import ApiVersion
from osbench.edges.openstack.common.cloud_users import (
    CHOICE,
    RANDOM,
    ROUND_ROBIN,
    by_project,
    cloud_users,
    turn,
)
from osbench.edges.openstack.worker.cloud_sessions import Sessions
from osbench.edges.openstack.worker.short_way import SHORT_WAY
from osbench.worker.tracing.trace_ids import mix, seed_of

#: Concurrent requests for tokens before the load, per process.
AT_ONCE = 8


class UserSelector:
    """The OpenStack accounts that the iterations of a workload use, in one process.

    They are of the context `users` if `context` has its users, else of the deployment. Raises
    DeploymentError if the deployment has neither users nor an admin.
    """

    def __init__(
        self, context: Mapping[str, Any], deployment: Deployment, timeout_s: float | None
    ) -> None:
        self.sessions = Sessions(
            deployment,
            timeout_s,
            context.get(SHORT_WAY),
            context.get(BOUND_KEY, USUAL),
        )
        self.deployment = deployment
        self._projects = [
            [Account(user.credential, user.state, gate=self.sessions.gate) for user in several]
            for several in by_project(cloud_users(context, deployment))
        ]
        self._users = [account for several in self._projects for account in several]
        self._choice = context.get(CHOICE, ROUND_ROBIN)
        self._seed = seed_of(f"{context.get('run', '')}/{context.get('workload', 0)}/user")
        gate, system = self.sessions.gate, deployment.system_admin
        admin = deployment.admin
        self._admin = Account(admin, gate=gate, system=system) if admin else None
        wished = {**deployment.api_versions, **context.get("api_versions", {})}
        #: Configuration of the record and of the context `api_versions`, by service.
        self.versions = {name: ApiVersion(**wish) for name, wish in wished.items()}

    def user(self, iteration: int) -> Account:
        """Return the account of an iteration (from 1); the same in every process of a run.

        Iterations take projects in turn, and the users of each in turn; or at random if the context
        says so.
        """
        if self._choice == RANDOM:
            return self._users[mix(self._seed, iteration) % len(self._users)]
        project, user = turn(iteration, self._projects)
        return self._projects[project][user]

    @property
    def admin(self) -> Account:
        """Return the administrator's account, one for the process.

        Raises DeploymentError if the deployment has none.
        """
        if self._admin is None:
            raise DeploymentError(
                f"deployment {self.deployment.name} has no admin: add one to its record"
            )
        return self._admin

    def warm(self, *, admin: bool, users: bool) -> None:
        """Log in the accounts without tokens, at most `AT_ONCE` at once; returns when all are.

        `admin`: the administrator. `users`: all users. Raises TimeoutError, ConnectionError,
        AuthenticationFailed, DeploymentError.
        """
        wanted = [self.admin] if admin else []
        if users:
            wanted += self._users
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="warm-up") as pool:
            list(pool.map(self.sessions.warm, wanted))

    @property
    def any_user(self) -> Account:
        """Return the first user's account, for requests before the load."""
        return self._users[0]
