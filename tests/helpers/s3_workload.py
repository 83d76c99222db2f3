"""Contexts and scenarios of S3 in the process of a test, against a small S3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers.fake_s3 import FakeS3
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.atomic import Recorder
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.exchanges import EXCHANGE
from osbench.common.protocol.iteration_outputs import outputs
from osbench.edges.openstack.contexts.s3_credentials import S3Credentials
from osbench.edges.openstack.contexts.s3_objects import S3ObjectsContext

RUN = "20260401-120000-ab12"
ACCESS, SECRET = "AKIDEXAMPLE", "planted/secret+key"


def record_of(server: FakeS3, access: str = ACCESS) -> Deployment:
    """The record of a server without Keystone."""
    address = server.url.replace("//", f"//{access}:planted%2Fsecret%2Bkey@")
    return Deployment.from_spec("store", {"osbench": {"services": {"s3": address}}})


def exchanges_of(recorder: Recorder) -> NDArray[Any]:
    """The requests that a recorder has."""
    return np.frombuffer(bytes(recorder.exchanges_so_far()), EXCHANGE)


class S3Workload:
    """A scenario with its contexts, ready in this process."""

    def __init__(
        self,
        server: FakeS3,
        name: str,
        args: Mapping[str, Any] | None = None,
        objects: Mapping[str, Any] | None = None,
        deployment: Deployment | None = None,
        credentials: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        self.plugin = Plugins().scenario(f"{name}@native")
        self.deployment = deployment or record_of(server)
        self.args = dict(args or {})
        self._keep = keep
        self.steps = [
            (S3Credentials, dict(credentials or {}), {}),
            (S3ObjectsContext, dict({"objects": 3} if objects is None else objects), {}),
        ]
        self._before = dict(context or {})
        for place, (kind, config, made) in enumerate(self.steps):
            kind(config, self._environment(place), made, keep).setup()
        self.context = {
            **self._made(len(self.steps)),
            "deployment": self.deployment,
            "run": RUN,
            "workload": 0,
            "scenario": name,
            "args": self.args,
            "timeout_s": 0.0,
        }
        self.plugin.cls.warm_up(self.context)
        self.user: Any = None

    def _made(self, count: int) -> dict[str, Any]:
        found: dict[str, Any] = dict(self._before)
        for _, _, made in self.steps[:count]:
            found |= made
        return found

    def _environment(self, place: int) -> ContextEnvironment:
        return ContextEnvironment(
            run=RUN, workload=0, deployment=self.deployment, context=self._made(place)
        )

    def run(self, iteration: int = 1) -> Any:
        """Run an iteration; return the scenario object, also kept as `last`."""
        scenario: Any = self.plugin.cls({**self.context, "iteration": iteration})
        if self.user is not None:
            scenario._user = self.user
        self.user = scenario.user
        self.last = scenario
        getattr(scenario, self.plugin.method)(**self.args)
        return scenario

    def rates(self) -> dict[str, float]:
        """The chart of the last iteration."""
        found = outputs(self.last._outputs or ())["additive"]
        return {name: value for chart in found for name, value in chart["data"]}

    def undo(self) -> None:
        """Undo the contexts, by new instances."""
        for place in reversed(range(len(self.steps))):
            kind, config, made = self.steps[place]
            kind(config, self._environment(place), made, self._keep).cleanup()
