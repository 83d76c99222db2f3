"""All is killed in the middle of a load of a real Keystone; `cleanup` removes what is left.

OSBENCH_KILL_REPETITIONS sets how often (once unless set).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterable, Iterator

import pytest

from helpers.runs import Site, site
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1800)]

REPETITIONS = int(os.environ.get("OSBENCH_KILL_REPETITIONS", "1"))
USERS = {"users": {"tenants": 2, "users_per_tenant": 1, "user_choice_method": "round_robin"}}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def named(lab: Lab) -> dict[str, set[str]]:
    """Names of all users and projects."""
    client = admin(lab)
    return {
        kind: {one["name"] for one in client.get(f"{lab.auth_url}/{kind}").json()[kind]}
        for kind in ("users", "projects")
    }


@contextlib.contextmanager
def bystanders(lab: Lab, names: Iterable[str]) -> Iterator[None]:
    """Users and projects of another user, with these names."""
    client = admin(lab)
    made = []
    try:
        for name in sorted(names):
            for kind in ("user", "project"):
                body = {kind: {"name": name, "domain_id": "default"}}
                answer = client.post(f"{lab.auth_url}/{kind}s", json=body).json()
                made.append(f"{lab.auth_url}/{kind}s/{answer[kind]['id']}")
        yield
    finally:
        for url in made:
            client.delete(url, raise_exc=False)


@pytest.mark.parametrize("nth", range(1, REPETITIONS + 1))
def test_kill_in_the_middle_of_create_user(here: Site, lab: Lab, nth: int) -> None:
    here.deployment(lab.deployment())
    task = here.task(
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "contexts": USERS,
            "runner": {"constant": {"times": 100_000, "concurrency": 4}},
        }
    )

    def of_run() -> dict[str, set[str]]:
        """Names of what the run has made, of users and projects."""
        (run,) = (here.data / "runs").iterdir()
        beginning = f"osb-{run.name}-"
        return {
            kind: {name for name in names if name.startswith(beginning)}
            for kind, names in named(lab).items()
        }

    before = named(lab)
    started = here.start("osbench-coord", "run", task, "--workers", "2")
    started.wait_for(lambda: any((here.data / "runs").glob("*")))
    started.wait_for(lambda: len(of_run()["users"]) > 2 + 2 * nth)

    os.kill(started.process.pid, signal.SIGKILL)
    for process in here.private():
        process.kill()
    started.process.wait()
    left = of_run()
    others = {
        like
        for name in (min(left["users"]), max(left["users"]), min(left["projects"]))
        for like in (f"{name}-1", name[:-1], f"{name[:-8]}aaaaaaaa")
    }
    with bystanders(lab, others):
        done = here.start("osbench-coord", "cleanup", "last").finish(within_s=900.0)
        after = named(lab)

        assert len(left["users"]) > 2 + 2 * nth
        assert len(left["projects"]) == 2
        assert done.code == 0, done.err
        assert of_run() == {"users": others, "projects": others}
        for kind, names in before.items():
            # what other runs have made in the same lab comes and goes
            assert {name for name in names if not re.search("osb-|rally", name)} <= after[kind]
        print(f"killed with {len(left['users'])} users: {done.out.strip()}")
