"""Unpacks the charts of iterations from the bytes of result rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from osbench.common.protocol.unpacking import unpack


def outputs(packed: Iterable[bytes]) -> dict[str, list[Any]]:
    """Return the charts of an iteration in lists under "additive" and "complete".

    Other data, which a faulty worker may have sent, is under "malformed". Soft checks are left out.
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
    """Return a chart without `conn_str`, a connection string with password that Rally adds."""
    data = item["data"]
    if isinstance(data, dict) and "conn_str" in data:
        return {**item, "data": {key: data[key] for key in data if key != "conn_str"}}
    return item
