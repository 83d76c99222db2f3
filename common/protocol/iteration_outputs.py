"""Unpacks the charts of iterations from the bytes of result rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from osbench.common.protocol.unpacking import unpack


def outputs(packed: Iterable[bytes]) -> dict[str, list[Any]]:
    """Unpack the outputs of one iteration; return its charts in lists "additive" and "complete".

    The list "malformed" has all else, which a faulty worker may have sent. Soft checks, and Rally's
    `conn_str` in charts, are left out.
    """
    found: dict[str, list[Any]] = {"additive": [], "complete": [], "malformed": []}
    for one in packed:
        try:
            output = unpack(one)
        except ValueError:
            output = None
        match output:
            case {"kind": "additive" | "complete" as kind, "item": {"data": _} as item}:
                whole = "title" in item and "chart_plugin" in item
                found[kind if whole else "malformed"].append(_without_secrets(item))
            case {"kind": "checks", "item": dict()}:
                # soft checks are not charts
                pass
            case _:
                found["malformed"].append(output)
    return found


def _without_secrets(item: dict[str, Any]) -> dict[str, Any]:
    """Drop `conn_str` of a chart's data: Rally puts a password there."""
    data = item["data"]
    if isinstance(data, dict) and "conn_str" in data:
        return {**item, "data": {key: data[key] for key in data if key != "conn_str"}}
    return item
