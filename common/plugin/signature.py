"""Keyword arguments against a signature: what is missing, unexpected or of another type."""

from __future__ import annotations

import difflib
import inspect
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

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


def problems(name: str, method: Callable[..., Any], args: Mapping[str, Any]) -> list[str]:
    """What is wrong with calling `method`, called `name` in messages, with `args`.

    The first parameter, the instance, is left out. One message per problem.
    """
    parameters = list(inspect.signature(method).parameters.values())[1:]
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    found = [
        f"argument {key!r} of {name} is missing"
        for key, parameter in named.items()
        if parameter.default is parameter.empty and key not in args
    ]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        found += [
            f"{name} has no argument {key!r}{near(key, named)}" for key in args if key not in named
        ]
    types_of = hints(method)
    for key, value in args.items():
        if key in named and key in types_of and not _fits(value, types_of[key]):
            wanted = inspect.formatannotation(types_of[key])
            found.append(f"argument {key!r} of {name} must be {wanted}, not {reprlib.repr(value)}")
    return found


def near(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: known ones like it, or nothing."""
    found = difflib.get_close_matches(name, list(known))
    return f"; did you mean {' or '.join(found)}?" if found else ""


def placeholder(hint: Any) -> Any:
    """A value that fits an annotation, for examples; "..." where anything fits."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return placeholder(next(iter(typing.get_args(hint))))
    plain = typing.get_origin(hint) or hint
    if plain is list:
        return [placeholder(one) for one in typing.get_args(hint)[:1]]
    return next((value for kind, value in _PLACEHOLDERS.items() if kind is plain), "...")


def hints(method: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters of `method`, by name."""
    try:
        return typing.get_type_hints(inspect.unwrap(method))
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
