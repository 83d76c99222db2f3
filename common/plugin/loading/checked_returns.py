"""Checks values that methods of a plug-in return, so that a wrong one is reported by its method.

`checked_class` derives a class whose methods and properties check their values. Without it a wrong
value would fail somewhere in osbench, with nothing about the plug-in.
"""

from __future__ import annotations

import functools
import inspect
import math
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from osbench.common.errors import OsbenchError, PluginError
from osbench.common.plugin.runner import Capacity, Step
from osbench.common.plugin.sla import SpanSelection, Verdict
from osbench.common.secrets.masking import error_text, mask_text
from osbench.common.text.escaping import escaped

#: Most characters of a wrong value in a message.
_SHOWN = 200


class _Wanted(NamedTuple):
    """A kind of value: text for messages, and whether a value is of it."""

    text: str
    fits: Callable[[Any], bool]


def _optional(wanted: _Wanted) -> _Wanted:
    return _Wanted(f"{wanted.text} or None", lambda value: value is None or wanted.fits(value))


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0


def _are(value: Any, fits: Callable[[Any], bool]) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(map(fits, value))
    )


def _is_pair(value: Any) -> bool:
    return _are(value, _is_number) and len(value) == 2


def _is_verdict(value: Any) -> bool:
    return (
        isinstance(value, Verdict)
        and isinstance(value.success, bool)
        and isinstance(value.detail, str)
    )


def _is_step(value: Any) -> bool:
    if not isinstance(value, Step):
        return False
    # an array of numpy is a sequence, too
    arrivals: list[Any] = list(value.arrivals) if hasattr(value.arrivals, "__iter__") else [None]
    return (
        (value.users is None or _are(value.users, _is_whole))
        and (value.budget is None or _is_whole(value.budget))
        and all(map(_is_number, arrivals))
        and arrivals == sorted(arrivals)
        and (value.stop_s is None or _is_number(value.stop_s))
        and isinstance(value.done, bool)
    )


_TEXTS = _Wanted("a list of texts", lambda value: _are(value, lambda one: isinstance(one, str)))
_NAMES = _Wanted(
    "a collection of texts",
    lambda value: (
        isinstance(value, Collection)
        and not isinstance(value, str | bytes)
        and all(isinstance(one, str) for one in value)
    ),
)
_NUMBER = _Wanted("a finite number", _is_number)
_WHOLE = _Wanted("an integer, 0 or more", _is_whole)
_TEXT = _Wanted("a text", lambda value: isinstance(value, str))
_DONE = _Wanted(
    "when all is done: it cannot be `async` or have `yield`",
    lambda value: not inspect.isawaitable(value) and not inspect.isgenerator(value),
)
_BOOLEAN = _Wanted("True or False", lambda value: isinstance(value, bool))
_VERDICT = _Wanted("self.verdict(success, detail) with True or False and a text", _is_verdict)
_STEP = _Wanted(
    "a Step: users, a tuple of integers with one for each worker; arrivals, ascending seconds;"
    " budget, an integer; stop_s, seconds; done, True or False",
    _is_step,
)

#: Kinds of values by kind of plug-in and method.
_METHODS: Mapping[str, Mapping[str, _Wanted]] = {
    "scenario": {
        "check_files": _TEXTS,
        "check_arguments": _TEXTS,
        "check_user_data": _TEXTS,
        "check_branches": _TEXTS,
        "check_without_base": _TEXTS,
        "action_names": _optional(_NAMES),
    },
    "runner": {
        "__init__": _DONE,
        "check": _TEXTS,
        "notes": _TEXTS,
        "timeout_s": _NUMBER,
        "concurrency": _WHOLE,
        "planned": _optional(_WHOLE),
        "lasts_s": _optional(_NUMBER),
        "planned_s": _optional(_NUMBER),
        "ramp_up_s": _NUMBER,
        "settle_s": _NUMBER,
        "hold_s": _NUMBER,
        "most_rate": _optional(_NUMBER),
        "users": _WHOLE,
        "asked": _Wanted("pairs of numbers", lambda value: _are(value, _is_pair)),
        "next_rate": _optional(_NUMBER),
        "found": _Wanted("a Capacity", lambda value: isinstance(value, Capacity)),
        "step": _STEP,
    },
    "sla": {
        "__init__": _DONE,
        "check_config": _TEXTS,
        "judged_actions": _NAMES,
        "check": _VERDICT,
        "selections": _Wanted(
            "a list of SpanSelection",
            lambda value: _are(value, lambda one: isinstance(one, SpanSelection)),
        ),
        "check_spans": _VERDICT,
        "breach": _optional(_VERDICT),
    },
    "context": {"check_config": _TEXTS, "setup": _DONE, "cleanup": _DONE},
    "hook": {"check_config": _TEXTS, "run": _DONE, "stop": _DONE},
    "trigger": {
        "__init__": _DONE,
        "check_config": _TEXTS,
        "due": _Wanted("a list of integers", lambda value: _are(value, _is_whole)),
    },
    "exporter": {"export": _DONE, "send": _TEXT, "export_failure": _BOOLEAN, "push": _DONE},
}
#: Methods whose exceptions have a meaning: they fail an action, a criterion, or an export.
_MAY_RAISE: Mapping[str, Collection[str]] = {
    "sla": ("check", "check_spans", "breach"),
    "context": ("setup", "cleanup"),
    "hook": ("run", "stop"),
    "trigger": ("due",),
    "exporter": ("export", "send", "export_failure", "push"),
}


def checked_class(kind: str, cls: type) -> type:
    """Return a subclass of a user's plug-in of `kind` whose methods check the values they return.

    They raise PluginError for a value of a wrong kind; methods that are not in _MAY_RAISE also
    raise it instead of any exception but OsbenchError. osbench's classes, and classes without such
    methods, are returned themselves. Raises PluginError if CONFIG_SCHEMA is not a mapping.
    """
    if cls.__module__.startswith("osbench."):
        return cls
    schema = getattr(cls, "CONFIG_SCHEMA", {})
    if not isinstance(schema, Mapping):
        raise PluginError(
            f"{_file_of(cls)}: {cls.__qualname__}.CONFIG_SCHEMA is {_shown_value(schema)}; it must "
            "be a JSON schema, a mapping"
        )
    members: dict[str, Any] = {}
    for name, wanted in _METHODS[kind].items():
        defined = inspect.getattr_static(cls, name, None)
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        if defined is not None and not owner.__module__.startswith("osbench."):
            members[name] = _member(kind, cls, name, defined, wanted)
    if not members:
        return cls
    copied = ("__module__", "__qualname__", "__doc__")
    return type(cls)(
        cls.__name__, (cls,), {**{name: getattr(cls, name) for name in copied}, **members}
    )


def plugin_error_text(error: Exception) -> str:
    """Return a message on a plug-in's exception; a message of `checked_class` names it already."""
    if isinstance(error, OsbenchError):
        return str(error)
    return f"the plug-in raises {error_text(error)}"


def _member(kind: str, cls: type, name: str, defined: Any, wanted: _Wanted) -> Any:
    where = f"{_file_of(cls)}: {cls.__qualname__}.{name}"
    may_raise = name in _MAY_RAISE.get(kind, ())

    def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            value = function(*args, **options)
        except OsbenchError:
            raise
        except Exception as error:
            if may_raise:
                raise
            raise PluginError(f"{where} raises {error_text(error)}{_line(error, cls)}") from None
        if not wanted.fits(value):
            raise PluginError(
                f"{where} returned {_shown_value(value)}; it must return {wanted.text}"
            )
        if isinstance(value, Step) and not getattr(cls, "OPEN", False):
            _check_users(where, value, options["capacity"] if "capacity" in options else args[-1])
        return value

    if isinstance(defined, property):
        return property(lambda self: call(defined.__get__, self, cls))
    if isinstance(defined, classmethod | staticmethod):

        @functools.wraps(defined.__func__)
        def of_class(_: type, *args: Any, **options: Any) -> Any:
            return call(getattr(cls, name), *args, **options)

        return classmethod(of_class)
    if not callable(defined):
        return defined

    @functools.wraps(defined)
    def of_instance(self: Any, *args: Any, **options: Any) -> Any:
        return call(defined.__get__(self, cls), *args, **options)

    return of_instance


def _check_users(where: str, step: Step, capacity: Sequence[int]) -> None:
    if step.users is None or len(step.users) != len(capacity):
        raise PluginError(
            f"{where} returned {_shown_value(step)}; users must have as many numbers as "
            f"`capacity`, {len(capacity)}, since the runner is not OPEN"
        )


def _shown_value(value: Any) -> str:
    try:
        return escaped(mask_text(repr(value)))[:_SHOWN]
    except Exception:  # noqa: BLE001 - the plug-in's own code
        return f"a {type(value).__name__}"


def _file_of(cls: type) -> str:
    try:
        return Path(inspect.getfile(cls)).name
    except (TypeError, OSError):
        return cls.__module__


def _line(error: Exception, cls: type) -> str:
    """Return ", line N" for the innermost line of the plug-in's file in a traceback; "" without."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [one.lineno for one in frames if Path(one.filename).name == _file_of(cls)]
    return f", line {lines[-1]}" if lines else ""
