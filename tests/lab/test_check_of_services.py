"""`deployment check` of real services: what each does with the key, and which is down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Site, site
from services import operations
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def check(here: Site, lab: Lab, **changes: str) -> tuple[int, dict[str, str]]:
    """`deployment check`: exit code, and result and detail of each line."""
    spec: dict[str, Any] = lab.deployment()
    spec["openstack"] |= changes
    here.deployment(spec, "checked")
    done = here.coord("deployment", "check", "checked", "--timeout", "30")
    here.coord("deployment", "delete", "checked")
    lines = (line.strip() for line in done.out.splitlines()[2:])
    return done.code, {line.split()[0]: line for line in lines if line}


def test_deployment_check_tells_what_each_service_does_with_the_key(here: Site, lab: Lab) -> None:
    kinds = {"identity", "image", "messaging", "placement"}

    code, right = check(here, lab)
    _, wrong = check(here, lab, profiler_hmac_key="wrong")

    assert code == 0
    for kind in kinds:
        assert "spans after" in right[kind], right
        assert " version " in right[kind]
        assert "clock" in right[kind]
        assert " warning " in wrong[kind], wrong
        assert "no spans" in wrong[kind]


def test_deployment_check_names_services_that_take_the_default_key(
    here: Site, default_key: Lab
) -> None:
    code, found = check(here, default_key)

    assert code == 0
    for kind in ("identity", "placement"):
        assert " warning " in found[kind], found
        assert "spans after" in found[kind]
        assert "accepts OSProfiler's default key SECRET_KEY" in found[kind]


def test_deployment_check_names_the_service_that_is_down(here: Site, lab: Lab) -> None:
    operations.stop(lab, ["placement"])
    try:
        code, found = check(here, lab)
    finally:
        operations.start(lab, ["placement"])

    assert code == 1
    assert " failed " in found["placement"]
    assert "Connection refused" in found["placement"]
    assert " ok " in found["image"]
