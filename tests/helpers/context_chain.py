"""Contexts of a cloud, set up and undone in the process of a test."""

from __future__ import annotations

from helpers.cloud_workload import RUN
from helpers.fake_cloud import FakeCloud
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.openstack.common import resource_names


class Chain:
    """Contexts set up one after the other, and undone by new instances."""

    def __init__(self, cloud: FakeCloud, workload: int = 0, **record) -> None:
        self.deployment = Deployment.from_spec("cloud", cloud.deployment(**record))
        self.workload = workload
        self.made: list[tuple[type, object, dict]] = []
        self.kept: list[dict] = []
        self.progress: list[tuple[str, int, int]] = []

    def environment(self, count: int) -> ContextEnvironment:
        context: dict = {}
        for _, _, made in self.made[:count]:
            context |= made
        return ContextEnvironment(
            run=RUN,
            workload=self.workload,
            deployment=self.deployment,
            context=context,
            tell=lambda *progress: self.progress.append(progress),
        )

    def set_up(self, kind, config=None):
        made: dict = {}
        self.made.append((kind, config if config is not None else {}, made))
        environment = self.environment(len(self.made) - 1)
        kind(self.made[-1][1], environment, made, lambda: self.kept.append(dict(made))).setup()
        return made

    def undo(self):
        while self.made:
            kind, config, made = self.made[-1]
            kind(config, self.environment(len(self.made) - 1), made).cleanup()
            self.made.pop()


def made_by(chain: Chain, iteration: int) -> str:
    """A name that an iteration of the workload gives, once `Cleanup` is set up."""
    return resource_names.in_iteration(
        RUN, chain.workload, iteration, chain.made[-1][2]["names_key"]
    )
