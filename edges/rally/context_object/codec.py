"""Packs Rally's context object: plain data, credentials, and shared references.

Rally lists a user twice, among all users and among the users of its tenant, and both are the same
object. So an object that occurs again is written as a reference to its first occurrence.
"""

from __future__ import annotations

import copy
import datetime
import importlib
from collections.abc import Callable
from typing import Any

import msgpack

from osbench.common.errors import ContextError
from osbench.common.protocol.unpacking import DEPTH
from osbench.common.protocol.unpacking import unpack as unpack_within_bounds

#: Types that msgpack supports directly.
PLAIN = (type(None), bool, int, float, str, bytes)

#: Codes of msgpack's extension types; `_REFERENCE` holds the number of a container.
_REFERENCE, _CREDENTIAL, _TUPLE, _SET, _TIME, _DATE, _RESOURCE, _DEFERRED = range(1, 9)
#: In this order, because a datetime is also a date.
_TIMES = ((datetime.datetime, _TIME), (datetime.date, _DATE))


def pack(value: Any) -> bytes:
    """Pack Rally's context object, or a part of it, as bytes for `unpack`.

    Supported are plain data, dates, tuples, sets, Rally's credentials, resources and deferred
    objects. A dict, list or credential that occurs twice stays one object. Raises ContextError,
    with the key, for other types and for nesting deeper than DEPTH.
    """
    return _Writer().pack(value, "")


def unpack(data: bytes) -> Any:
    """Unpack the value that `pack` packed; an object that occurred twice is one object again.

    Raises ValueError for bytes beyond the limits of `common.protocol.unpacking`, ContextError if a
    plug-in's class is not installed here.
    """
    return _Reader().unpack(data)


class _Writer:
    """Packs a value; numbers dicts, lists and credentials as it visits them, to refer to them."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        #: Keeps numbered objects alive, so that their id() is not reused.
        self._alive: list[Any] = []
        self._depth = 0

    def pack(self, value: Any, place: str) -> bytes:
        packed: bytes = msgpack.packb(self._plain(value, place))
        return packed

    def _plain(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        number = self._seen.get(id(value))
        if number is not None:
            return msgpack.ExtType(_REFERENCE, number.to_bytes(4, "big"))
        self._depth += 1
        if self._depth > DEPTH:
            raise ContextError(f"{place[:80]}... is nested too deeply; give at most {DEPTH} levels")
        try:
            return self._container(value, place)
        finally:
            self._depth -= 1

    def _container(self, value: Any, place: str) -> Any:
        if _is_credential(value):
            self._number(value)
            return self._extension(_CREDENTIAL, _fields(value), place)
        if isinstance(value, dict):
            self._number(value)
            return {
                key if type(key) in PLAIN else self._refuse(key, f"a key of {place or 'it'}"): (
                    self._plain(item, f"{place}.{key}" if place else str(key))
                )
                for key, item in dict.items(value)
            }
        if isinstance(value, list):
            self._number(value)
            return [self._plain(item, f"{place}[{at}]") for at, item in enumerate(value)]
        return self._other(value, place)

    def _other(self, value: Any, place: str) -> Any:
        for base in (str, bytes, int, float):
            if isinstance(value, base):
                return base(value)  # type: ignore[arg-type] # a subclass of it, written as its base
        for kinds, code in _TIMES:
            if isinstance(value, kinds):
                return msgpack.ExtType(code, value.isoformat().encode())
        for kind, code in ((tuple, _TUPLE), ((set, frozenset), _SET)):
            if isinstance(value, kind):
                return self._extension(code, list(value), place)
        if _is_resource(value):
            properties = [type(value).__name__, list(type(value).__slots__), value._id_property]
            return self._extension(_RESOURCE, [*properties, value._as_dict()], place)
        if is_deferred(value):
            named = f"{type(value).__module__}:{type(value).__qualname__}"
            return self._extension(_DEFERRED, [named, dict(vars(value))], place)
        return self._refuse(value, place)

    def _number(self, value: Any) -> None:
        self._seen[id(value)] = len(self._alive)
        self._alive.append(value)

    def _extension(self, code: int, value: Any, place: str) -> Any:
        # a temporary dict or list: it must not get a number
        if isinstance(value, dict):
            plain: Any = {k: self._plain(v, f"{place}.{k}") for k, v in value.items()}
        else:
            plain = [self._plain(v, f"{place}[{at}]") for at, v in enumerate(value)]
        return msgpack.ExtType(code, msgpack.packb(plain))

    def _refuse(self, value: Any, place: str) -> Any:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ContextError(
            f"{place or 'it'} is a {kind}, which workers cannot be given; give text, numbers, "
            "lists or mappings"
        )


class _Reader:
    """Unpacks one value. Visits containers in the writer's order, so that references resolve."""

    def __init__(self) -> None:
        self._seen: list[Any] = []
        self._depth = 0
        self._make: dict[int, Callable[[Any], Any]] = {
            _TUPLE: tuple,
            _SET: set,
            _RESOURCE: _resource,
            _DEFERRED: _deferred_resource,
        }

    def unpack(self, data: bytes) -> Any:
        return self._revive(unpack_within_bounds(data, extensions=True))

    def _revive(self, value: Any) -> Any:
        if type(value) is dict:
            self._seen.append(value)
            for key, item in value.items():
                value[key] = self._revive(item)
        elif type(value) is list:
            self._seen.append(value)
            for at, item in enumerate(value):
                value[at] = self._revive(item)
        elif type(value) is msgpack.ExtType:
            # each holds separate bytes, whose depth is bounded by itself
            self._depth += 1
            if self._depth > DEPTH:
                raise ValueError("nested too deeply")
            try:
                return self._extended(value.code, value.data)
            finally:
                self._depth -= 1
        return value

    def _extended(self, code: int, data: bytes) -> Any:
        if code == _REFERENCE:
            return self._seen[int.from_bytes(data, "big")]
        if code == _TIME:
            return datetime.datetime.fromisoformat(data.decode())
        if code == _DATE:
            return datetime.date.fromisoformat(data.decode())
        raw = unpack_within_bounds(data, extensions=True)
        if code == _CREDENTIAL:
            # numbered before its fields, as in the writer
            at = len(self._seen)
            self._seen.append(None)
            fields = {key: self._revive(item) for key, item in raw.items()}
            self._seen[at] = _credential_class()(**fields)
            return self._seen[at]
        return self._make[code]([self._revive(item) for item in raw])


def is_deferred(value: Any) -> bool:
    """Return whether Rally resolves the argument `value` for each iteration (from Rally 5.1)."""
    cls = getattr(importlib.import_module("rally.task.types"), "DeferredResource", None)
    return cls is not None and isinstance(value, cls)


def deep_copy(value: Any) -> Any:
    """Return a deep copy, made faster than by `copy.deepcopy`; copied credentials have no caches.

    An object that occurs several times is copied several times. RecursionError for a dict or list
    that contains itself.
    """
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is dict:
        return {key: deep_copy(item) for key, item in value.items()}
    if kind is list:
        return [deep_copy(item) for item in value]
    if _is_credential(value):
        return kind(**deep_copy(_fields(value)))
    return copy.deepcopy(value)


def _is_credential(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "OpenStackCredential" and kind is _credential_class()


def _credential_class() -> Any:
    return importlib.import_module("rally_openstack.common.credential").OpenStackCredential


def _fields(credential: Any) -> dict[str, Any]:
    """Return the constructor arguments of a Rally credential, without its cache of endpoints."""
    fields: dict[str, Any] = dict(credential.to_dict())
    fields.pop("discovery_cache", None)
    return fields


def _is_resource(value: Any) -> bool:
    return isinstance(value, importlib.import_module("rally.task.service")._Resource)


def _resource(parts: list[Any]) -> Any:
    name, slots, key, properties = parts
    service = importlib.import_module("rally.task.service")
    return service.make_resource_cls(name, slots, key)(**properties)


def _deferred_resource(parts: list[Any]) -> Any:
    named, state = parts
    # a module that Rally has loaded from a plug-in path cannot be imported
    base = importlib.import_module("rally.task.types").DeferredResource
    walk = importlib.import_module("rally.common.plugin.discover").itersubclasses
    classes = [cls for cls in walk(base) if f"{cls.__module__}:{cls.__qualname__}" == named]
    if not classes:
        raise ContextError(f"{named} is not installed here: install the same plug-ins on all hosts")
    resource = object.__new__(classes[-1])
    vars(resource).update(state)
    return resource
