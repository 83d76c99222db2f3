"""Reads the capacity that a search has found from the JSON results of its run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.common.files.regular_files import read_regular

#: Results of a run are smaller.
_MOST_BYTES = 64 << 20


class CapacityFileError(OsbenchError):
    """The file has no capacity: it is unreadable, of another kind, or the search found none."""


def capacity_in(path: str) -> float:
    """Return the capacity of the only search in a file of results, arrivals per second.

    Raises CapacityFileError.
    """
    try:
        document = json.loads(read_regular(Path(path), _MOST_BYTES))
    except (OSError, OsbenchError, ValueError, RecursionError) as error:
        raise CapacityFileError(f"{path} cannot be read as JSON: {error}") from None
    found = list(_searches(document))
    if len(found) != 1:
        raise CapacityFileError(
            f"{path} has {len(found)} searches, expected one: write it with `osbench-coord run"
            " TASK --json`, whose task has the runner search once"
        )
    if found[0].get("unit", "arrivals/s") != "arrivals/s":
        raise CapacityFileError(
            f"{path} has a search for users at once, and an overload is a rate: search with `low`"
            " and `high` instead of `users`, or write the capacity as a rate"
        )
    if found[0].get("limit"):
        raise CapacityFileError(
            f"{path} has a search whose limit was the load generator, not the service: search"
            " again without that limit, or write the capacity as a rate"
        )
    rate: Any = found[0].get("rate")
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    if found[0].get("kind") != "found" or not is_number or not 0 < rate < 1e9:
        raise CapacityFileError(
            f"{path} has a search without a capacity (its result is {found[0].get('kind')!r}):"
            " widen `low` and `high` of the search, or write the capacity as a rate"
        )
    return float(rate)


def _searches(document: Any) -> Iterator[Mapping[str, Any]]:
    workloads = document.get("workloads") if isinstance(document, Mapping) else None
    for workload in workloads if isinstance(workloads, list) else ():
        search = workload.get("search") if isinstance(workload, Mapping) else None
        if isinstance(search, Mapping):
            yield search
