"""Converts charts to forms that Rally's reports and its import accept; others become text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft7Validator

#: Charts of Rally's that its reports cannot add up.
_COMPLETE = ("Table", "TextArea", "EmbeddedChart", "EmbeddedExternalChart", "OSProfiler")
#: Those whose form Rally's reports and its import do not agree on, or that need more plug-ins.
_AS_TEXT = ("EmbeddedChart", "EmbeddedExternalChart", "OSProfiler")

#: Title of the chart that holds an iteration's trace id.
TRACE = "OSProfiler Trace-ID"

_TEXTS = ("title", "chart_plugin", "description", "label", "axis_label")
_NUMBER: Mapping[str, Any] = {"type": "number"}
_STRING: Mapping[str, Any] = {"type": "string"}
_POINTS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2},
}

#: Complete data of hooks' charts: series, pairs, a table or lines.
_HOOK_DATA = Draft7Validator(
    {
        "anyOf": [
            {
                "type": "array",
                "items": {
                    "type": "array",
                    "items": [_STRING, {"anyOf": [_POINTS, _NUMBER]}],
                    "minItems": 2,
                    "additionalItems": False,
                },
            },
            {
                "type": "object",
                "properties": {
                    "cols": {"type": "array", "items": _STRING},
                    "rows": {
                        "type": "array",
                        "items": {"type": "array", "items": {"anyOf": [_STRING, _NUMBER]}},
                    },
                },
                "required": ["cols", "rows"],
                "additionalProperties": False,
            },
            {"type": "array", "items": _STRING},
        ]
    }
)


def of_iteration(found: Mapping[str, Iterable[Any]], trace: str | None) -> dict[str, list[Any]]:
    """Convert the charts of one iteration to Rally's form, with the keys `additive` and `complete`.

    `found`: charts by these keys. `trace`: the trace id, which becomes a chart unless there is one;
    None for none. Charts that Rally would refuse become text in `complete`; malformed pairs of
    `additive` charts are left out.
    """
    additive, complete = [], []
    for item in found["additive"]:
        chart = _plain(item)
        kind, data = chart["chart_plugin"], chart["data"]
        if isinstance(data, list) and kind not in _COMPLETE:
            additive.append({**chart, "data": [pair for pair in data if _is_pair(pair)]})
        else:
            complete.append(_as_text(chart))
    for item in found["complete"]:
        chart = _plain(item)
        whole = isinstance(chart["data"], list | dict) and chart["chart_plugin"] not in _AS_TEXT
        complete.append(chart if whole else _as_text(chart))
    if trace and all(chart["title"] != TRACE for chart in complete):
        complete.insert(0, {"title": TRACE, "chart_plugin": "TextArea", "data": [trace]})
    return {"additive": additive, "complete": complete}


def of_hook(found: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Convert a hook firing's charts to Rally's form, with the keys `additive` and `complete`.

    Rally accepts fewer forms than for iterations; others become text.
    """
    charts = of_iteration(found, None)
    complete = [
        chart if _HOOK_DATA.is_valid(chart["data"]) else _as_text(chart)
        for chart in charts["complete"]
    ]
    return {"additive": charts["additive"], "complete": complete}


def _is_pair(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
    )


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart with only the keys that Rally knows, and its data as JSON values."""
    texts = {key: str(item[key]) for key in _TEXTS if item.get(key) is not None}
    return {**texts, "data": _json(item["data"])}


def _as_text(chart: Mapping[str, Any]) -> dict[str, Any]:
    return {**chart, "chart_plugin": "TextArea", "data": _lines(chart["data"])}


def _lines(data: Any) -> list[str]:
    if isinstance(data, Mapping) and "trace_id" in data:
        return [str(data["trace_id"])]
    if isinstance(data, str):
        return [data]
    entries = data if isinstance(data, list) else [data]
    return [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]


def _json(value: Any) -> Any:
    """Convert a value of msgpack to JSON: NaN, infinity to None; bytes, others to strings."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
