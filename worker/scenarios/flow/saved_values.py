"""Check for values that steps of a flow use before any step can have saved them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from osbench.worker.scenarios.flow import placeholders

Step = Mapping[str, Any]


def unsaved_names(
    on_start: Iterable[Step],
    steps: Iterable[Step],
    branches: Iterable[Iterable[Step]],
    on_stop: Iterable[Step],
    headers: Any = None,
) -> Iterator[str]:
    """Yield a message for each name that a flow uses before any step can have saved it.

    Each name is reported once. A virtual user keeps saved values, so a branch may use a value that
    another branch saves in an earlier iteration. `headers` of the flow are left out of requests
    until their values are saved: only names that no step ever saves are reported there.
    """
    first, always, last = list(on_start), list(steps), list(on_stop)
    parts = [list(branch) for branch in branches]
    by_start = _saved_names(first)
    of_branches = _saved_names(step for part in parts for step in part)
    by_steps = by_start | _saved_names(always)
    every = by_steps | of_branches | _saved_names(last)
    reported: set[str] = set()
    for name in placeholders.names_of("saved", headers):
        if name not in every and name not in reported:
            reported.add(name)
            yield f"{{saved.{name}}} is not saved by any step"
    # the steps come before the steps of branches, of which an earlier iteration may have made any
    for part, before in (
        (first, set[str]()),
        (always, by_start | of_branches),
        *((part, by_steps | of_branches) for part in parts),
        (last, by_steps | of_branches),
    ):
        known = set(before)
        for step in part:
            for name in placeholders.names_of("saved", dict(step)):
                if name not in known and name not in reported:
                    reported.add(name)
                    yield _message(name, step, every)
            known |= _saved_names([step])


def _saved_names(steps: Iterable[Step]) -> set[str]:
    # a step with `repeat: 0` saves none
    parts = (step.get("save") for step in steps if step.get("repeat") != 0)
    return {str(name) for saves in parts if isinstance(saves, Mapping) for name in saves}


def _message(name: str, step: Step, every: set[str]) -> str:
    if name not in every:
        return f"{{saved.{name}}} is not saved by any step"
    at = step.get("name") or step.get("path")
    return f"{{saved.{name}}} is not saved by any step before {at!r}, which uses it"
