"""Texts for lists and objects of OpenAPI parameters: `style`, `explode`, `collectionFormat`.

Source: https://spec.openapis.org/oas/v3.1.0#style-values, and Swagger 2.0. The styles `matrix` and
`label` of paths are written as `simple`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.request_values import as_text

#: Separators of a list by `style`, and by the `collectionFormat` of Swagger 2.0.
_SEPARATORS = {
    **{"spaceDelimited": " ", "pipeDelimited": "|"},
    **{"ssv": " ", "tsv": "\t", "pipes": "|"},
}


def query_fields(parameter: Mapping[str, Any], value: Any) -> dict[str, str | list[str]]:
    """Return the fields of a query by name, for the value of a parameter; a list is repeated."""
    name, style = str(parameter.get("name")), parameter.get("style", "form")
    explode = _explodes(parameter, style)
    if isinstance(value, Mapping):
        if style == "deepObject":
            return {f"{name}[{key}]": as_text(inner) for key, inner in value.items()}
        if explode:
            return {str(key): as_text(inner) for key, inner in value.items()}
    elif isinstance(value, list) and explode:
        return {name: [as_text(inner) for inner in value]}
    return {name: _SEPARATORS.get(_format(parameter, style), ",").join(_pieces(value))}


def simple(parameter: Mapping[str, Any], value: Any) -> list[str]:
    """Return the texts, to be joined by commas, of the value of a parameter in a path or header."""
    if isinstance(value, Mapping) and parameter.get("explode") is True:
        return [f"{key}={as_text(inner)}" for key, inner in value.items()]
    return _pieces(value)


def _explodes(parameter: Mapping[str, Any], style: Any) -> bool:
    if "collectionFormat" in parameter or ("schema" not in parameter and "type" in parameter):
        # Swagger 2.0, in which csv is the default
        return parameter.get("collectionFormat") == "multi"
    explode = parameter.get("explode")
    return explode if isinstance(explode, bool) else style == "form"


def _format(parameter: Mapping[str, Any], style: Any) -> str:
    return str(parameter.get("collectionFormat", style))


def _pieces(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [as_text(part) for pair in value.items() for part in pair]
    return [as_text(inner) for inner in value] if isinstance(value, list) else [as_text(value)]
