"""Exchanges over connections of another class than the driver's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from osbench.worker.http.exchange_steps import Steps, Wrap

T = TypeVar("T")


def with_connections(
    steps: Steps[T],
    *,
    make: Callable[[Wrap], Any] | None = None,
    turn: Callable[[Any], Any] | None = None,
) -> Steps[T]:
    """Pass the steps of a generator on to its driver, but with other connections.

    `make` makes a connection of a connected socket; without it the driver makes one, and `turn`
    returns its replacement.
    """
    outcome: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.throw(error) if error is not None else steps.send(outcome)
            error = None
            if isinstance(step, Wrap) and make is not None:
                outcome = make(step)
                continue
            try:
                outcome = yield step
                if isinstance(step, Wrap) and turn is not None:
                    outcome = turn(outcome)
            except GeneratorExit:
                raise
            except BaseException as raised:  # noqa: BLE001 - the generator decides
                error = raised
    except StopIteration as end:
        found: T = end.value
        return found
    finally:
        steps.close()
        # an error that is kept here would keep itself
        del error
