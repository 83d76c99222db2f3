"""An iteration's view of Rally's context object: its user, and lazy copies of the rest."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.edges.rally.context_object.views import View, own


class Choice:
    """Chooses the user of each iteration: at random, or round robin over tenants, as in Rally.

    Unlike in Rally, no list of users is copied for an iteration.
    """

    def __init__(self, shared: Mapping[str, Any]) -> None:
        """Read users, tenants and `user_choice_method` from a workload's Rally context object."""
        self._users: list[Any] = list(shared.get("users") or ())
        self._tenants: Mapping[str, Any] = shared.get("tenants") or {}
        self._method = shared.get("user_choice_method")
        self._turns = self._by_tenant() if self._users else []

    def _by_tenant(self) -> list[list[Any]]:
        # tenants of existing users do not list them: Rally fails with a KeyError there
        found: dict[Any, list[Any]] = {name: [] for name in sorted(self._tenants)}
        for user in self._users:
            found.setdefault(user["tenant_id"], []).append(user)
        for name, tenant in self._tenants.items():
            found[name] = list(tenant.get("users") or found[name])
        return [users for users in found.values() if users]

    def user(self, iteration: int) -> Any:
        """Return the user of an iteration, numbered from 1; not a copy.

        By `user_choice_method`: "random"; else round robin over tenants, and over the users of each
        tenant. None if there are no users, or the context object has no method.
        """
        if not self._users or self._method is None:
            return None
        if self._method == "random":
            return random.choice(self._users)  # noqa: S311 - load, not secrets
        turn = iteration - 1
        users = self._turns[turn % len(self._turns)]
        return users[turn // len(self._turns) % len(users)]

    def tenant(self, user: Mapping[str, Any]) -> Any:
        """Return the entry of the context object's `tenants` for a user; not a copy."""
        return self._tenants[user["tenant_id"]]


class Shared:
    """Rally's context object of one workload, shared by all its iterations in this process."""

    def __init__(self, shared: Mapping[str, Any], *, choose: bool) -> None:
        """Store a shallow copy of the context object; `choose`: iterations get a user of it."""
        self._shared = dict(shared)
        self._choice = Choice(shared) if choose else None

    @property
    def whole(self) -> dict[str, Any]:
        """Return the shared dict itself, not a copy."""
        return self._shared

    def narrowed(self, iteration: int) -> dict[str, Any]:
        """Return an iteration's view of the context object; its values are copied at first access.

        It has the key `iteration`, the argument, which counts from 1. `user` and `tenant` of this
        iteration are added if a user is to be chosen, users were prepared, and no `user` is there.
        """
        copies: dict[int, Any] = {}
        view = View(self._shared, copies)
        view["iteration"] = iteration
        if self._choice is not None and "user" not in view:
            user = self._choice.user(iteration)
            if user is not None:
                tenant = self._choice.tenant(user)
                view["user"], view["tenant"] = own(user, copies), own(tenant, copies)
        return view
