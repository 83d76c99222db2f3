"""What one iteration gets of Rally's context object: its user, and copies of what it looks at.

Rally copies the whole object for every iteration, which costs more with every user. Here a
container is copied when it is first looked at, and only it: what an iteration changes stays its
own, and what it does not touch costs nothing.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex

#: What is handed on as it is: it cannot be changed.
_FIXED = frozenset((type(None), bool, int, float, str, bytes))


class View(dict[Any, Any]):
    """A copy of a mapping whose values are copied when they are looked at."""

    __slots__ = ("_copies",)

    def __init__(self, source: Mapping[Any, Any], copies: dict[int, Any]) -> None:
        super().__init__(source)
        #: The copies of this iteration by the id of what they were made from: what was one
        #: object in several places is one copy.
        self._copies = copies

    def __getitem__(self, key: Any) -> Any:
        value = dict.__getitem__(self, key)
        if type(value) in _FIXED:
            return value
        return self._own(key, value)

    def _own(self, key: Any, value: Any) -> Any:
        copied = own(value, self._copies)
        if copied is not value:
            dict.__setitem__(self, key, copied)
        return copied

    def __iter__(self) -> Iterator[Any]:
        # defined here so that dict() and ** ask for the values one by one
        return dict.__iter__(self)

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        return self[key] if key in self else default  # noqa: SIM401 - this is get itself

    def values(self) -> Any:
        """As of a dict."""
        self._all()
        return dict.values(self)

    def items(self) -> Any:
        """As of a dict."""
        self._all()
        return dict.items(self)

    def _all(self) -> None:
        for key, value in list(dict.items(self)):
            if type(value) not in _FIXED:
                self._own(key, value)

    def pop(self, key: Any, *default: Any) -> Any:
        """As of a dict."""
        if key in self:
            self[key]
        return dict.pop(self, key, *default)

    def popitem(self) -> tuple[Any, Any]:
        """As of a dict."""
        key, value = dict.popitem(self)
        return key, own(value, self._copies)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        dict.setdefault(self, key, default)
        return self[key]

    def copy(self) -> dict[Any, Any]:
        """As of a dict."""
        self._all()
        return dict(dict.items(self))

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in dict.items(self)}

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)


class ListView(list[Any]):
    """A copy of a list whose items are copied when they are looked at."""

    __slots__ = ("_copies",)

    def __init__(self, source: Iterable[Any], copies: dict[int, Any]) -> None:
        super().__init__(source)
        self._copies = copies

    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        value = list.__getitem__(self, at)
        if type(value) in _FIXED:
            return value
        copied = own(value, self._copies)
        if copied is not value:
            list.__setitem__(self, at, copied)
        return copied

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while at < len(self):
            yield self[at]
            at += 1

    def __reversed__(self) -> Iterator[Any]:
        return iter([self[at] for at in range(len(self) - 1, -1, -1)])

    def __add__(self, other: Any) -> Any:
        return self[:] + list(other)

    def pop(self, at: SupportsIndex = -1) -> Any:
        """As of a list."""
        return own(list.pop(self, at), self._copies)

    def copy(self) -> list[Any]:
        """As of a list."""
        return list(self)

    def sort(self, **options: Any) -> None:
        """As of a list."""
        self[:] = sorted(self, **options)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in list.__iter__(self)]

    def __reduce__(self) -> Any:
        return list, (self[:],)


def own(value: Any, copies: dict[int, Any]) -> Any:
    """This iteration's own copy of a value; the value itself where it cannot be changed."""
    kind = type(value)
    if kind in _FIXED or kind is View or kind is ListView:
        return value
    known = copies.get(id(value))
    if known is None:
        if kind is dict:
            known = View(value, copies)
        elif kind is list:
            known = ListView(value, copies)
        else:
            # credentials above all; what they cache stays behind
            known = copy.deepcopy(value)
            copies[id(known)] = known
        copies[id(value)] = known
    return known


class Choice:
    """Chooses an iteration's user as Rally does, without making anything of all users."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        """`shared` is Rally's context object. Choices are made where it says how."""
        self._users: list[Any] = list(shared.get("users") or ())
        self._tenants: Mapping[str, Any] = shared.get("tenants") or {}
        self._method = shared.get("user_choice_method")
        self._turns = self._by_tenant() if self._users else []

    def _by_tenant(self) -> list[list[Any]]:
        # a tenant of existing users does not list them: Rally ends with a KeyError there
        found: dict[Any, list[Any]] = {name: [] for name in sorted(self._tenants)}
        for user in self._users:
            found.setdefault(user["tenant_id"], []).append(user)
        for name, tenant in self._tenants.items():
            found[name] = list(tenant.get("users") or found[name])
        return [users for users in found.values() if users]

    def user(self, iteration: int) -> Any:
        """The user of an iteration, counted from 1; None where no users were prepared."""
        if not self._users or self._method is None:
            return None
        if self._method == "random":
            return random.choice(self._users)  # noqa: S311 - load, not secrets
        turn = iteration - 1
        users = self._turns[turn % len(self._turns)]
        return users[turn // len(self._turns) % len(users)]

    def tenant(self, user: Mapping[str, Any]) -> Any:
        """The tenant of a user."""
        return self._tenants[user["tenant_id"]]


class Shared:
    """The context object of a workload, as all its iterations share it."""

    def __init__(self, shared: Mapping[str, Any], *, choose: bool) -> None:
        """`choose` is whether iterations are given a user; other scenarios have no use for it."""
        self._shared = dict(shared)
        self._choice = Choice(shared) if choose else None

    def narrowed(self, iteration: int) -> dict[str, Any]:
        """What an iteration, counted from 1, is given."""
        copies: dict[int, Any] = {}
        view = View(self._shared, copies)
        view["iteration"] = iteration
        if self._choice is not None and "user" not in view:
            user = self._choice.user(iteration)
            if user is not None:
                tenant = self._choice.tenant(user)
                view["user"], view["tenant"] = own(user, copies), own(tenant, copies)
        return view
