"""Iterations of scenarios of a cloud in the process of a test."""

from __future__ import annotations

import re
from typing import Any

from helpers.fake_cloud import FakeCloud
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.atomic import WIDTH
from osbench.common.plugin.plugins import Plugins
from osbench.worker.tracing.profiling import Tracer

RUN = "20260401-120000-ab12"
PLUGINS = Plugins()
READY = "ready (polled: at most 10 % or 0.1 s late)"
PARTS = ("accepted", READY)
#: Ids, and names given by iterations.
_SINGLE = re.compile(r"\b[0-9a-f]{32}\b|osb-[\w.-]+")


class Workload:
    """A scenario that is ready in this process."""

    def __init__(self, cloud: FakeCloud, name: str, args: Any = None, **context: Any) -> None:
        self.plugin = PLUGINS.scenario(f"{name}@native")
        self.args = args or {}
        self.context = {
            "deployment": Deployment.from_spec("cloud", cloud.deployment()),
            "run": RUN,
            "workload": 0,
            "scenario": name,
            "args": self.args,
            "timeout_s": 0.0,
            **context,
        }
        self.plugin.cls.warm_up(self.context)

    def run(self, iteration: int = 1) -> dict[str, int]:
        """Run an iteration; returns its actions, nested as "outer > inner", with their number."""
        scenario: Any = self.plugin.cls({**self.context, "iteration": iteration})
        self.last = scenario
        wait_until, declared = scenario.wait_until, self.plugin.cls.method(self.context).needs.waits

        def declared_wait(what: str, wait: str, look: Any) -> Any:
            assert wait in declared
            return wait_until(what, wait, look)

        scenario.wait_until = declared_wait
        getattr(scenario, self.plugin.method)(**self.args)
        return actions(scenario)


def actions(scenario: Any) -> dict[str, int]:
    recorder = scenario._recorder
    paths: list[str] = []
    found: dict[str, int] = {}
    for at in range(0, len(recorder.actions), WIDTH):
        number, outer = recorder.actions[at], recorder.actions[at + 1]
        name = recorder.names.names[number]
        paths.append(f"{paths[outer]} > {name}" if outer >= 0 else name)
        found[paths[-1]] = found.get(paths[-1], 0) + 1
    return found


def requests(cloud: FakeCloud) -> list[str]:
    return [f"{method} {path}" for method, path, _ in cloud.seen]


def sent_by(workload: Workload, cloud: FakeCloud, iteration: int = 1) -> list[str]:
    """Requests of an iteration but its polls, as "METHOD /path" with "*" for ids and names.

    Polls are told by their lack of trace headers.
    """
    tracer = Tracer("key", "r", 1.0, None, 0)
    cloud.seen.clear()
    profiler = tracer.begin(iteration)
    try:
        workload.run(iteration)
    finally:
        tracer.end(profiler, None)
    traced = [
        f"{method} {path}" for method, path, headers in cloud.seen if "x-trace-info" in headers
    ]
    return [_SINGLE.sub("*", one) for one in traced]


def timed(workload: Workload) -> list[str]:
    """Actions of the last iteration without the two parts of accepted operations, in order."""
    return [name for name in actions(workload.last) if name.rpartition(" > ")[2] not in PARTS]
