"""What a real cloud refuses from the start is reported in one message before the load."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Finished, Site, site
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

PASSWORD = "member-of-nothing-much"


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@contextlib.contextmanager
def member(lab: Lab) -> Iterator[str]:
    """Name of a user who is a member of the administrator's project and nothing more."""
    client, url = admin(lab), lab.auth_url
    name = f"refused-{uuid.uuid4().hex[:8]}"
    body = {"user": {"name": name, "password": PASSWORD, "domain_id": "default"}}
    user = client.post(f"{url}/users", json=body).json()["user"]["id"]
    try:
        roles = client.get(f"{url}/roles?name=member").json()["roles"]
        project = client.get_project_id()
        client.put(f"{url}/projects/{project}/users/{user}/roles/{roles[0]['id']}")
        yield name
    finally:
        client.delete(f"{url}/users/{user}")


def run(here: Site, lab: Lab, scenario: str, **admin_is: str) -> Finished:
    """Run a scenario on the lab, with other words for its administrator."""
    spec: dict[str, Any] = lab.deployment()
    spec["openstack"]["admin"] |= admin_is
    here.deployment(spec, "cloud")
    options = ("--deployment", "cloud", "--workers", "1", "--quiet")
    return here.coord("run", "--scenario", scenario, *options)


def test_a_missing_administrator_role_is_reported_before_the_load(
    here: Site, keystone: Lab
) -> None:
    with member(keystone) as name:
        done = run(here, keystone, "KeystoneBasic.create_user", username=name, password=PASSWORD)

    assert done.code == 2
    assert re.search(
        r"GET http\S+/v3/users: 403 FORBIDDEN: You are not authorized .*"
        r"\(for example request req-[-0-9a-f]{36}\)",
        done.err,
    )
    assert len(done.err.strip().splitlines()) == 1
    assert PASSWORD not in done.err


@pytest.mark.parametrize(
    ("scenario", "password", "said"),
    [
        ("KeystoneBasic.create_user", "wrong", "no token to user 'admin' of project 'admin'"),
        (
            "MistralWorkbooks.list_workbooks",
            "",
            "has no service of type workflowv2 (public in RegionOne)",
        ),
    ],
)
def test_what_cannot_work_is_one_message_before_the_load(
    here: Site, keystone: Lab, scenario: str, password: str, said: str
) -> None:
    changed = {"password": password} if password else {}

    done = run(here, keystone, scenario, **changed)

    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "wrong" not in done.err
