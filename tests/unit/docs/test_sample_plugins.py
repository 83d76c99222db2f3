"""The samples of the plug-in guide that need more than local mode do what the guide says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.iterations import TICKS_A_SECOND, Iteration, columns, failed, ok, statistics
from helpers.readme import REPOSITORY
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.plugin.context import Context, ContextEnvironment
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Sla
from osbench.coordinator.task.taskfile.schema.schema_errors import validate
from osbench.edges.openstack.coordinator import cloud_access

PLUGINS = Plugins([str(REPOSITORY / "samples" / "plugins")])
RUN = "20260401-120000-ab12"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    """A cloud with Cinder."""
    monkeypatch.setattr(cloud_access, "PAUSES_S", (0.0,) * 4)
    with fake_cloud() as server:
        server.absent.discard("block-storage")
        yield server


def context(name: str, cloud: FakeCloud, config: Any, made: dict[str, Any], **made_by_others: Any):
    """A context as a task file names it, in a run of the cloud's record."""
    kind = PLUGINS.get("context", name)
    assert issubclass(kind, Context)
    assert not validate(config, kind.CONFIG_SCHEMA, "")
    environment = ContextEnvironment(
        run=RUN,
        deployment=Deployment.from_spec("cloud", cloud.deployment()),
        context=made_by_others,
    )
    return kind(config, environment, made)


def test_volumes_are_made_in_each_project_and_removed(cloud: FakeCloud) -> None:
    cloud.make("volumes", {"name": "of-others", "status": "available"})
    users: dict[str, Any] = {}
    context("users", cloud, {"tenants": 2}, users).setup()
    config, made = {"size": 3, "volumes_per_tenant": 2}, {}

    context("empty_volumes", cloud, config, made, **users).setup()

    ours = [one for one in cloud.objects["volumes"].values() if one["name"] != "of-others"]
    assert [one["size"] for one in ours] == [3] * 4
    assert set(made["empty_volumes"]) == {user["project_id"] for user in users["users"]}
    assert [len(ids) for ids in made["empty_volumes"].values()] == [2, 2]
    assert {one for ids in made["empty_volumes"].values() for one in ids} == {
        one["id"] for one in ours
    }
    context("empty_volumes", cloud, config, made, **users).cleanup()
    assert cloud.named("volumes") == ["of-others"]


def test_a_volume_whose_response_was_lost_is_not_made_twice(cloud: FakeCloud) -> None:
    cloud.lost.append([r"POST /cinder/volumes", 1])
    made: dict[str, Any] = {}

    context("empty_volumes", cloud, {}, made).setup()

    (volume,) = cloud.objects["volumes"].values()
    assert list(made["empty_volumes"].values()) == [[volume["id"]]]


def test_a_volume_that_fails_is_told_and_removed(cloud: FakeCloud) -> None:
    name = f"osb-{RUN}-0-c-empty_volumes-0-0"
    volume = cloud.make("volumes", {"name": name, "status": "error"})
    made: dict[str, Any] = {}

    with pytest.raises(ContextError, match=f"volume {volume['id']} has the status error"):
        context("empty_volumes", cloud, {}, made).setup()
    context("empty_volumes", cloud, {}, made).cleanup()

    assert cloud.named("volumes") == []


def criterion(limit_ticks: int, percent: float = 50) -> Sla:
    """The criterion `sure_percentile` with a limit."""
    kind = PLUGINS.get("sla", "sure_percentile")
    assert issubclass(kind, Sla)
    config = {"p": percent, "max_s": limit_ticks / TICKS_A_SECOND}
    assert not validate(config, kind.CONFIG_SCHEMA, "")
    return kind(config)


# the ranks 40 and 61 bound the median of 100; histograms round up by 0.1 % at most
@pytest.mark.parametrize(("limit", "success"), [(62, True), (55, False)])
def test_the_whole_interval_must_be_below_the_limit(limit: int, success: bool) -> None:
    found = statistics(columns(ok(*range(1, 101))))

    verdict = criterion(limit).check(found)

    assert verdict.success is success
    assert "p50 of 100 iterations is between 78.2ms and 119ms with 95 % conf" in verdict.detail


@pytest.mark.parametrize(
    ("iterations", "said"),
    [
        (failed(1), "no iteration has succeeded"),
        (ok(1, 2, 3), "p99 of 3 iterations: too few for a confidence interval"),
        (ok(1), "p99 of 1 iteration: too few for a confidence interval"),
    ],
)
def test_too_few_iterations_fail(iterations: list[Iteration], said: str) -> None:
    verdict = criterion(100, 99).check(statistics(columns(iterations)))

    assert (verdict.success, verdict.detail) == (False, said)


def test_a_run_ends_early_once_the_percentile_cannot_keep_its_limit() -> None:
    slow, plan = 60, 100

    found = criterion(50).breach(statistics(columns(ok(*[100] * slow))), plan)

    assert found is not None
    assert not found.success
    assert criterion(50).breach(statistics(columns(ok(*[100] * (plan - slow)))), plan) is None
