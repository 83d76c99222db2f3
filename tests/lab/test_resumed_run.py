"""A coordinator is killed while it has users in a real Keystone; `resume` leaves none of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.runs import Site, site
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

TENANTS, USERS, TIMES = 2, 2, 12
#: Iterations of a load that is killed meanwhile.
LONG = 80


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def of_runs(here: Site, lab: Lab) -> list[str]:
    """Names of the users and projects that runs from here have made."""
    client = admin(lab)
    runs = tuple(f"osb-{path.name}-" for path in (here.data / "runs").glob("*"))
    return [
        one["name"]
        for kind in ("users", "projects")
        for one in client.get(f"{lab.auth_url}/{kind}").json()[kind]
        if one["name"].startswith(runs)
    ]


@pytest.mark.parametrize("when", ["setup", "load", "cleanup"])
def test_none_is_left_after_resume(
    here: Site, keystone: Lab, when: str, request: pytest.FixtureRequest
) -> None:
    if when != "load":
        request.getfixturevalue("whole")
    here.deployment(keystone.deployment())
    # the load must not be over before it is seen
    times = LONG if when == "load" else TIMES
    task = here.task(
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "contexts": {"users": {"tenants": TENANTS, "users_per_tenant": USERS}},
            "runner": {"constant": {"times": times, "concurrency": 1}},
        }
    )
    run = here.start("osbench-coord", "run", "--json", task, "--workers", "1")

    if when == "setup":
        run.wait_for(lambda: of_runs(here, keystone))
    elif when == "load":
        # the run knows sooner than a busy Keystone tells
        run.wait_for(lambda: here.status().get("settled", 0) > 1)
    else:
        most = TENANTS * (1 + USERS) + TIMES
        run.wait_for(lambda: len(of_runs(here, keystone)) == most)
        run.wait_for(lambda: len(of_runs(here, keystone)) < most)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    left = of_runs(here, keystone)
    done = here.start("osbench-coord", "resume", "last", "--json").finish(within_s=600.0)

    print(f"killed with {len(left)} users and projects; resumed: {done.code}, {done.err}")
    assert left
    assert of_runs(here, keystone) == []
    assert not (here.data / "runs" / done.printed["run_id"] / "contexts").exists()
    sums = done.sums
    # a Keystone on a busy machine may take longer than workers of local mode wait for
    assert sums["ok"] + sums["lost"] == times
    assert done.code == (3 if sums["lost"] else 0)
