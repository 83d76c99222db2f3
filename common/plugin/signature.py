"""Checks keyword arguments against a signature: missing, unexpected or of a wrong type."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from osbench.common.config.durations import seconds

if sys.version_info >= (3, 14):
    import annotationlib

#: A name in braces that no iteration fills in, as in other tools: {iteration} and {run} are.
PLACEHOLDER = re.compile(r"\{(?!(?:iteration|run)\})[A-Za-z_]\w*\}")

#: Types of JSON and YAML values that an annotation accepts. Other annotations are not checked.
ACCEPTED: Mapping[Any, tuple[type, ...]] = types.MappingProxyType(
    {
        bool: (bool,),
        int: (int,),
        float: (int, float),
        str: (str,),
        list: (list, tuple),
        dict: (Mapping,),
        Mapping: (Mapping,),
        types.NoneType: (types.NoneType,),
    }
)

_PLACEHOLDERS: Mapping[Any, Any] = types.MappingProxyType(
    {bool: True, int: 1, float: 1.0, dict: {}, Mapping: {}, types.NoneType: None}
)


def signature_of(method: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of `method`, also if its annotations cannot be evaluated.

    From Python 3.14 on, annotations are evaluated when they are read, and `inspect.signature`
    raises NameError for names that a module imports `if TYPE_CHECKING`. Raises TypeError or
    ValueError if `method` has no signature.
    """
    if sys.version_info >= (3, 14):
        form = annotationlib.Format.FORWARDREF
        return inspect.signature(method, annotation_format=form)  # noqa: TID251 - here only
    return inspect.signature(method)  # noqa: TID251 - here only


def name_problems(name: str, method: Callable[..., Any], args: Collection[str]) -> list[str]:
    """Return messages on required arguments missing in `args`, and on names in it that are unknown.

    `args`: names only. `method`: its first parameter, self, is left out. `name`: of the method, for
    messages.
    """
    parameters = list(signature_of(method).parameters.values())
    instance = "".join(p.name for p in parameters[:1])
    parameters = parameters[1:]
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    problems = []
    for key, parameter in named.items():
        if parameter.default is parameter.empty and key not in args:
            old = f"{key}_id"
            # as in early releases of Rally
            why = f": write {key}: {{id: ...}} instead of {old}" if old in args else ""
            problems.append(f"argument {key!r} of {name} is missing{why}")
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for key in args:
            if key not in named:
                why = "; it is in the place of self" if key == instance else near(key, named)
                problems.append(f"{name} has no argument {key!r}{why}")
    return problems


def type_problems(name: str, method: Callable[..., Any], args: Mapping[str, Any]) -> dict[str, str]:
    """Return messages on values in `args` whose type the method's annotations forbid, by argument.

    `name`: of the method, for messages. Annotations beyond `ACCEPTED` are not checked.
    """
    types_of = _types_of(getattr(method, "__func__", method))
    return {
        key: f"argument {key!r} of {name} must be {inspect.formatannotation(types_of[key])},"
        f" not {reprlib.repr(value)}{_in_seconds(value, types_of[key])}"
        for key, value in args.items()
        if key in types_of and not _fits(value, types_of[key])
    }


def _in_seconds(value: Any, annotation: Any) -> str:
    """Return the end of a message if text such as "2m" was given for a float; else "".

    It has the seconds to write instead.
    """
    if not isinstance(value, str) or annotation is not float:
        return ""
    try:
        return f": write {seconds(value)}, if it is in seconds"
    except ValueError:
        return ""


@functools.cache
def _types_of(method: Callable[..., Any]) -> Mapping[str, Any]:
    parameters = list(signature_of(method).parameters.values())[1:]
    types_of = hints(method)
    return {
        p.name: types_of[p.name]
        for p in parameters
        if p.name in types_of and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }


def near(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean A or B?" for an unknown name; "" if none in `known` is similar."""
    found = difflib.get_close_matches(name, list(known))
    return f"; did you mean {' or '.join(found)}?" if found else ""


def placeholder(hint: Any) -> Any:
    """Return an example value for a parameter annotated `hint`; "..." for text and others.

    Of a union it is for the first type, of a list a list with one example.
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return placeholder(next(iter(typing.get_args(hint))))
    plain = typing.get_origin(hint) or hint
    if plain is list:
        return [placeholder(one) for one in typing.get_args(hint)[:1]]
    return next((value for kind, value in _PLACEHOLDERS.items() if kind is plain), "...")


def hints(method: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of `method` by name, as types; empty if they cannot be resolved."""
    try:
        # as `inspect.signature`: decorators that change the arguments set a signature
        declares = inspect.unwrap(method, stop=lambda one: hasattr(one, "__signature__"))
        return typing.get_type_hints(declares)
    except Exception:  # noqa: BLE001 - names that exist only for type checkers; nothing to check
        return {}


def _fits(value: Any, hint: Any) -> bool:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(hint))
    plain = typing.get_origin(hint) or hint
    if plain not in ACCEPTED:
        return True
    if isinstance(value, bool) and plain is not bool:
        return False
    return isinstance(value, ACCEPTED[plain])
