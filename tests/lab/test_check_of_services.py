"""`deployment check` of real services: what each does with the key, and which is down."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from bench.copies import Like, copies
from helpers.runs import Site, site
from servers.child import PATIENCE_S
from services.catalogue import Catalogue, admin
from services.lab import Lab
from services.placement import Placement

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


#: A request that each of the services answers.
PATHS = {
    "identity": "/projects",
    "image": "/v2/images",
    "messaging": "/v2/queues",
    "placement": "/resource_providers",
}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def await_answers(lab: Lab) -> None:
    """Have each service answer once: a first request takes longest, and the check waits 10 s."""
    client, headers = admin(lab), {"Client-ID": str(uuid.uuid4())}
    for kind, path in PATHS.items():
        client.get(path, endpoint_filter={"service_type": kind}, headers=headers)


def check(here: Site, lab: Lab, **changes: str) -> tuple[int, dict[str, str]]:
    """`deployment check`: exit code, and result and detail of each line."""
    spec: dict[str, Any] = lab.deployment()
    spec["openstack"] |= changes
    here.deployment(spec, "checked")
    done = here.coord("deployment", "check", "checked", "--timeout", str(PATIENCE_S))
    here.coord("deployment", "delete", "checked")
    lines = (line.strip() for line in done.out.splitlines()[2:])
    return done.code, {line.split()[0]: line for line in lines if line}


def test_deployment_check_tells_what_each_service_does_with_the_key(here: Site, lab: Lab) -> None:
    await_answers(lab)

    code, right = check(here, lab)
    _, wrong = check(here, lab, profiler_hmac_key="wrong")

    assert code == 0, right
    for kind in PATHS:
        assert "spans after" in right[kind], right
        assert " version " in right[kind]
        assert "clock" in right[kind]
        assert "default key" not in right[kind]
        assert " warning " in wrong[kind], wrong
        assert "no spans" in wrong[kind]


def test_deployment_check_names_the_service_that_takes_the_default_key_and_then_is_down(
    here: Site, lab: Lab
) -> None:
    catalogue, own = Catalogue(lab), Placement().url(lab)
    try:
        with copies(lab, "placement", {"default": Like(profiler=True, default_key=True)}) as ran:
            url = f"http://127.0.0.1:{ran['default'].port}"
            catalogue.register("placement", "placement", url)
            await_answers(lab)
            code, careless = check(here, lab)
        failed, down = check(here, lab)
    finally:
        catalogue.register("placement", "placement", own)

    assert code == 0, careless
    assert " warning " in careless["placement"], careless
    assert "spans after" in careless["placement"]
    assert "accepts OSProfiler's default key SECRET_KEY" in careless["placement"]
    assert "default key" not in careless["image"]
    assert failed == 1
    assert " failed " in down["placement"]
    assert "Connection refused" in down["placement"]
    assert " ok " in down["image"]
