"""Lazy copies of nested data: a container is copied when it is first accessed.

Rally copies its whole context object for every iteration, at a cost that grows with the number of
users. Here only accessed containers are copied: changes by an iteration do not affect others, and
data that it does not access costs nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex

from osbench.edges.rally.context_object.codec import PLAIN, deep_copy

#: Immutable types, which need no copy.
_FIXED = frozenset(PLAIN)


class View(dict[Any, Any]):
    """A dict whose mutable values are copied at their first access; the source stays unchanged."""

    __slots__ = ("_copies",)

    def __init__(self, source: Mapping[Any, Any], copies: dict[int, Any]) -> None:
        super().__init__(source)
        #: The copies of this iteration by the id of their originals: an object that occurs in
        #: several places has one copy.
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

    def __setitem__(self, key: Any, value: Any) -> None:
        dict.__setitem__(self, key, keep(value, self._copies))

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set items, as `dict.update` does; these values are the iteration's and are not copied."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __iter__(self) -> Iterator[Any]:
        # defined here so that dict() and ** ask for the values one by one
        return dict.__iter__(self)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the iteration's copy of a key's value; `default` if the key is missing."""
        return self[key] if key in self else default  # noqa: SIM401 - this is get itself

    def values(self) -> Any:
        """Copy all values that are not copied yet, and return them, as `dict.values` does."""
        self._all()
        return dict.values(self)

    def items(self) -> Any:
        """Copy all values that are not copied yet, and return the items, as `dict.items` does."""
        self._all()
        return dict.items(self)

    def _all(self) -> None:
        for key, value in list(dict.items(self)):
            if type(value) not in _FIXED:
                self._own(key, value)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a key and return the iteration's copy of its value, as `dict.pop` does."""
        if key in self:
            self[key]
        return dict.pop(self, key, *default)

    def popitem(self) -> tuple[Any, Any]:
        """Remove the last item; return its key and the iteration's copy of its value."""
        key, value = dict.popitem(self)
        return key, own(value, self._copies)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the iteration's copy of a key's value; a missing key is first set to `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> dict[Any, Any]:
        """Return a plain dict with copies of all values."""
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
    """A list whose mutable items are copied at their first access; the source stays unchanged."""

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

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice):
            value = [keep(one, self._copies) for one in value]
        list.__setitem__(self, at, keep(value, self._copies))

    def append(self, value: Any) -> None:
        """Append a value; it is the iteration's and is not copied at access."""
        list.append(self, keep(value, self._copies))

    def insert(self, at: SupportsIndex, value: Any) -> None:
        """Insert a value before index `at`; it is the iteration's and is not copied at access."""
        list.insert(self, at, keep(value, self._copies))

    def extend(self, values: Iterable[Any]) -> None:
        """Append values; they are the iteration's and are not copied at access."""
        list.extend(self, [keep(value, self._copies) for value in values])

    def __iadd__(self, other: Any) -> Any:
        self.extend(other)
        return self

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
        """Remove the item at an index and return the iteration's copy of it."""
        return own(list.pop(self, at), self._copies)

    def copy(self) -> list[Any]:
        """Return a plain list with copies of all items."""
        return list(self)

    def sort(self, **options: Any) -> None:
        """Copy all items and sort them in place; `options` are those for `sorted`."""
        self[:] = sorted(self, **options)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in list.__iter__(self)]

    def __reduce__(self) -> Any:
        return list, (self[:],)


def own(value: Any, copies: dict[int, Any]) -> Any:
    """Return the iteration's copy of a value, made at the first call; immutable values themselves.

    Dicts and lists become views, which copy lazily. `copies`: the iteration's copies by `id` of the
    original; a new copy is added.
    """
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
            # mainly credentials
            known = keep(deep_copy(value), copies)
        copies[id(value)] = known
    return known


def keep(value: Any, copies: dict[int, Any]) -> Any:
    """Return `value`; note in `copies` that it is the iteration's, so `own` keeps it."""
    kind = type(value)
    if kind not in _FIXED and kind is not View and kind is not ListView:
        copies[id(value)] = value
    return value
