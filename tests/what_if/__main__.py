"""The command of `make what-if`: predicts each change, makes it, and compares p95."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence

import click

from helpers.runs import Site, site
from servers import redis_server
from servers.planned_shop import KEY, SHAPES, planned_shop

#: Factors of calls, by shape all the same.
CHANGES: Sequence[Mapping[str, float]] = (
    {"a": 0.5},
    {"b": 0.0},
    {"c": 0.25},
    {"a": 0.5, "b": 0.2},
)
#: Arrivals per second, and their number.
RATE, TIMES = 10, 200
#: Largest error of a prediction, and cases that have to be within it.
ERROR, RIGHT = 0.1, 0.9


@click.command(context_settings={"show_default": True})
@click.argument("shapes", nargs=-1, metavar="[SHAPE ...]")
def main(shapes: tuple[str, ...]) -> None:
    """Compare predicted with true p95 of service times, for an idle machine.

    A case is a prediction from the traces of a run, and a run of the service whose calls are really
    faster. All 20 take about ten minutes. The exit code is 1 if more than one in ten is wrong by
    more than 10 %.
    """
    unknown = [name for name in shapes if name not in SHAPES]
    if unknown:
        raise click.UsageError(f"no shape {', '.join(unknown)}; there are {', '.join(SHAPES)}")
    begun = time.monotonic()
    click.echo(f"{'shape':12}{'change':28}{'before':>9}{'predicted':>11}{'true':>9}{'error':>9}")
    errors = [abs(error) for shape in shapes or tuple(SHAPES) for error in _errors(shape)]
    right = sum(error <= ERROR for error in errors)
    click.echo(
        f"\n{right} of {len(errors)} predictions within {ERROR:.0%} of the true p95,"
        f" in {time.monotonic() - begun:.0f} s"
    )
    sys.exit(0 if right >= RIGHT * len(errors) else 1)


def _errors(shape: str) -> list[float]:
    """Play the cases of a shape; returns the errors of the predictions."""
    found = []
    with site() as here, redis_server(password="traces") as store:
        before = _p95_s(here, store.url, shape, {})
        asked = here.coord("runs", "list", "--json")
        run = json.loads(asked.out)[0]["run"]
        for factors in CHANGES:
            changes = [f"shop/web {name}: {_amount(left)}" for name, left in factors.items()]
            words = [word for change in changes for word in ("--what-if", change)]
            done = here.coord("trace", "explain", run, "--json", *words)
            assert done.code == 0, done.err
            (prediction,) = json.loads(done.out)["predictions"]
            predicted = next(one["after_s"] for one in prediction["shifts"] if one["name"] == "p95")
            true = _p95_s(here, store.url, shape, factors)
            error = predicted / true - 1
            found.append(error)
            said = ", ".join(f"{name} x {left:g}" for name, left in factors.items())
            times = "".join(
                f"{1e3 * one:{width}.1f}"
                for one, width in ((before, 9), (predicted, 11), (true, 9))
            )
            click.echo(
                f"{shape:12}{said:28}{times}{error:+9.1%}{'' if abs(error) <= ERROR else ' !!'}"
            )
    return found


def _amount(left: float) -> str:
    return f"-{100 - 100 * left:g}%" if left else "0"


def _p95_s(here: Site, store: str, shape: str, factors: Mapping[str, float]) -> float:
    """The p95 of service times of a run with calls that take a part of their time."""
    with planned_shop(here.home, store, shape, factors) as address:
        shop = {
            "services": {"shop": address},
            "profiler_hmac_key": KEY,
            "profiler_conn_str": store,
        }
        here.deployment({"osbench": shop}, "-".join(["shop", *map(str, factors.values())]))
        task = here.task(
            {
                "scenario": {
                    "HttpRequests.check_request": {
                        "url": f"{address}/report",
                        "method": "GET",
                        "status_code": 200,
                    }
                },
                "runner": {"rps": {"rps": RATE, "times": TIMES}},
                "sla": {"failure_rate": {"max": 0}},
            }
        )
        done = here.run(task)
        assert done.code == 0, done.err
        (workload,) = done.printed["workloads"]
        found: float = workload["latency"]["service"]["ok"]["p95"]
        return found


if __name__ == "__main__":
    main()
