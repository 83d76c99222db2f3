"""The command of `make elastic`: a staircase of load on workers that come and go by its metrics.

Prints for each worker when it started, when the run used it, and when the service had the rate
that this worker made possible. Exit code 1 if a rate took more than 20 s, an iteration was lost,
or one reached the service twice.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from elastic.autoscaler import Autoscaler
from helpers.runs import Cluster, Site, Started, checked, site
from servers import CountingServer, counting_server, redis_server

#: Seconds that an iteration takes, and virtual users of a worker: it makes 20 a second.
TAKES_S, USERS = 0.5, 10
CAPACITY = USERS / TAKES_S
#: Arrivals per second, one after another, and how long each lasts, seconds.
RATES, STEP_S = (8, 24, 38, 56, 8), 45
#: The rate has to be there so soon after a worker has started, within this part of it, seconds.
FOLLOWS_S, NEAR = 20.0, 0.95
#: Rates are counted over so many seconds.
COUNTED_S = 3.0
PLUGIN = """
import urllib.request

from osbench.plugin import scenario


class Asking(scenario.Scenario):
    @scenario.configure(name="Asking.ask")
    def ask(self, url: str) -> None:
        known = {"X-Osbench-Run": self.context["run"]}
        known["X-Osbench-Iteration"] = str(self.context["iteration"])
        urllib.request.urlopen(urllib.request.Request(url, headers=known)).read()
"""


def main() -> int:
    """Run the staircase; return the exit code."""
    with redis_server(password="elastic") as redis, site() as here, counting_server() as service:
        service.delay_s = TAKES_S
        cluster = Cluster(here, redis)
        here.configure(cluster.messaging, {"benchmark": {"max_lag_s": 2}})
        here.write("asking.py", PLUGIN)

        def start(port: int) -> Started:
            options = ("--virtual-users", str(USERS), "--plugin-path", "asking.py")
            return cluster.start_worker(*options, "--metrics", str(port))

        scaler = Autoscaler(start)
        scaler.add()
        cluster.await_idle(1)
        run = _begin(here, service)
        joined = _watch(run, cluster, scaler)
        done = run.finish()
        print(done.err[-600:])
        return _judged(done.result, scaler, joined, service)


def _begin(here: Site, service: CountingServer) -> Started:
    stages = [
        one
        for rate in RATES
        for one in ({"target": rate, "duration": 0}, {"target": rate, "duration": STEP_S})
    ]
    workload = {
        "scenario": {"Asking.ask": {"url": service.url}},
        "runner": {"stages": {"start": RATES[0], "stages": stages[1:]}},
    }
    task = here.task(workload)
    return here.begin("osbench-coord", "run", "--json", "--plugin-path", "asking.py", task)


def _watch(run: Started, cluster: Cluster, scaler: Autoscaler) -> dict[str, float]:
    """Scale until the run is over; return when each worker, by label, first had iterations."""
    joined: dict[str, float] = {}
    while run.process.poll() is None:
        scaler.look()
        for beat in cluster.present():
            if beat.busy:
                joined.setdefault(beat.label, time.monotonic())
        time.sleep(0.2)
    return joined


def _judged(
    result: dict[str, Any],
    scaler: Autoscaler,
    joined: dict[str, float],
    service: CountingServer,
) -> int:
    table = Table("worker", "started", "in use after", "ended", "rate before", "rate possible",
                  "rate reached after")  # fmt: skip
    begun = service.instants[0]
    slow = False
    for number, worker in enumerate(scaler.workers, 1):
        planned = RATES[min(len(RATES) - 1, int((worker.started_at - begun) // STEP_S))]
        live = sum(one.ended_at > worker.started_at for one in scaler.workers[:number])
        possible = min(planned, CAPACITY * live)
        after_s = _reached(service.instants, worker.started_at, possible)
        slow = slow or (number > 1 and after_s > FOLLOWS_S)
        used_s = joined.get(f"host-{number - 1}", math.inf) - worker.started_at
        table.add_row(
            str(number),
            f"{worker.started_at - begun:.0f} s",
            f"{used_s:.1f} s",
            "" if worker.ended_at == math.inf else f"{worker.ended_at - begun:.0f} s",
            f"{_rate(service.instants, worker.started_at):.1f}/s",
            f"{possible:g}/s",
            f"{after_s:.1f} s" if number > 1 else "",
        )
    Console(width=110).print(table)
    workload = result["workloads"][0]
    sums = checked(workload)
    twice = sum(count > 1 for count in service.counts.values())
    print(json.dumps({key: sums[key] for key in sorted(sums)}))
    print(f"{len(service.counts)} iterations at the service, {twice} twice")
    started = sums["ok"] + sums["failed"] + sums["timed_out"]
    whole = not sums["lost"] and not twice and len(service.counts) == started
    return int(slow or not whole or len(scaler.workers) < 4)


def _rate(instants: Sequence[float], at_s: float) -> float:
    """Requests per second in the seconds before an instant."""
    return sum(at_s - COUNTED_S <= one < at_s for one in instants) / COUNTED_S


def _reached(instants: Sequence[float], from_s: float, rate: float) -> float:
    """Seconds after an instant at whose end there is nearly a rate; infinite if there never is."""
    at_s = from_s + COUNTED_S
    while at_s < from_s + 3 * FOLLOWS_S:
        if _rate(instants, at_s) >= NEAR * rate:
            return at_s - from_s
        at_s += 0.5
    return math.inf


if __name__ == "__main__":
    sys.exit(main())
