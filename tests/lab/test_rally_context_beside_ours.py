"""A native scenario with contexts of both: users of osbench's, flavors that only Rally makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.lab.population import population
from helpers.runs import Site, site
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

FLAVOR = "made-by-rally"


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def flavors(lab: Lab) -> set[str]:
    there = admin(lab).get("/flavors", endpoint_filter={"service_type": "compute"}).json()
    return {one["name"] for one in there["flavors"]}


def test_servers_get_the_flavor_that_rallys_context_makes(here: Site, nova: Lab) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    here.deployment(nova.deployment())
    task = here.task(
        {
            "scenario": {
                "NovaServers.boot_server": {
                    "image": {"name": "lab-image"},
                    "flavor": {"name": FLAVOR},
                }
            },
            "contexts": {
                "users": {"tenants": 1, "users_per_tenant": 1},
                "flavors": [{"name": FLAVOR, "ram": 64, "disk": 1}],
            },
            "runner": {"serial": {"times": 2}},
        }
    )
    before = (flavors(nova), population(nova, "keystone", "nova"))

    done = here.run(task, "--workers", "2")

    assert done.code == 0, done.out + done.err
    assert done.sums["ok"] == 2
    (workload,) = done.result["workloads"]
    assert workload["source"] == "native"
    assert FLAVOR not in before[0]
    assert (flavors(nova), population(nova, "keystone", "nova")) == before
