"""Fixtures of the lab: real OpenStack services."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.lab.rally_judge import RallyJudge
from servers import missing
from services import operations
from services.faults import Unavailable
from services.lab import Lab
from services.temporary import temporary_lab

# Asks for services in addition to Keystone, which take minutes to install and start: `small` for
# those on SQLite, `all` for all.
ASK = "OSBENCH_LAB"


@pytest.fixture(scope="session")
def keystone(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A Keystone and its trace store: those of the lab of all tests, unless it is a user's."""
    if is_asked_for() and not request.config.getoption("--lab"):
        yield start(request.getfixturevalue("running_lab"), ["keystone"])
        return
    with temporary_lab() as lab:
        lab.options = replace(lab.options, cached=True)
        yield start(lab, ["keystone"])


@pytest.fixture(scope="session")
def running_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The lab of all tests, or the one that `--lab` names, which keeps running.

    Skips the test where no lab is asked for.
    """
    named = request.config.getoption("--lab")
    if named:
        yield Lab(Path(named))
        return
    if not is_asked_for():
        pytest.skip(f"takes minutes: ask with {ASK}=small, {ASK}=all or --lab DIR")
    with temporary_lab() as lab:
        lab.options = replace(lab.options, cached=True)
        yield lab


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> None:
    """Skips the test where not all of the lab is asked for."""
    if not request.config.getoption("--lab") and os.environ.get(ASK) != "all":
        pytest.skip(f"takes many minutes: ask with {ASK}=all or --lab DIR")


@pytest.fixture(scope="session")
def lab(running_lab: Lab) -> Lab:
    """Keystone, Placement, Glance and Zaqar."""
    return start(running_lab, ["placement", "glance", "zaqar"])


@pytest.fixture(scope="session")
def swift(whole: None, running_lab: Lab) -> Lab:
    """Keystone and Swift, whose packages not every machine can have."""
    return start(running_lab, ["swift"])


@pytest.fixture(scope="session")
def mistral(whole: None, lab: Lab) -> Lab:
    """The lab with Mistral, which needs RabbitMQ and MariaDB."""
    return start(lab, ["mistral"])


@pytest.fixture(scope="session")
def neutron(whole: None, lab: Lab) -> Lab:
    """The lab with Neutron."""
    return start(lab, ["neutron"])


@pytest.fixture(scope="session")
def nova(whole: None, lab: Lab) -> Lab:
    """The lab with Nova, its fake driver, and Neutron."""
    return start(lab, ["nova"])


@pytest.fixture(scope="session")
def cinder(whole: None, lab: Lab) -> Lab:
    """The lab with Cinder and its logging driver."""
    return start(lab, ["cinder"])


@pytest.fixture(scope="session")
def barbican(whole: None, lab: Lab) -> Lab:
    """The lab with Barbican."""
    return start(lab, ["barbican"])


@pytest.fixture(scope="session")
def ironic(whole: None, lab: Lab) -> Lab:
    """The lab with Ironic and its fake hardware."""
    return start(lab, ["ironic"])


@pytest.fixture(scope="session")
def designate(whole: None, lab: Lab) -> Lab:
    """The lab with Designate and its fake back end."""
    return start(lab, ["designate"])


@pytest.fixture(scope="session")
def manila(whole: None, lab: Lab) -> Lab:
    """The lab with Manila and its dummy driver."""
    return start(lab, ["manila"])


@pytest.fixture(scope="module")
def stock_mistral(whole: None) -> Iterator[Lab]:
    """A separate lab with Mistral as it ships, which writes its spans to its log only."""
    with temporary_lab() as lab:
        lab.options = replace(lab.options, mistral_stock=True)
        yield start(lab, ["mistral"])


@pytest.fixture(scope="module")
def own_zaqar(whole: None) -> Iterator[Lab]:
    """A separate lab with a Zaqar to configure anew."""
    with temporary_lab() as lab:
        yield start(lab, ["zaqar"])


@pytest.fixture(scope="module")
def own_nova(whole: None) -> Iterator[Lab]:
    """A separate lab with a Nova to start anew."""
    with temporary_lab() as lab:
        yield start(lab, ["nova"])


@pytest.fixture(scope="session")
def judge() -> Iterator[RallyJudge]:
    """Rally's criteria."""
    with RallyJudge() as found:
        yield found


def is_asked_for() -> bool:
    """Whether the tests may start services beside Keystone."""
    return os.environ.get(ASK) in ("small", "all")


def start(lab: Lab, names: Iterable[str]) -> Lab:
    """The lab with these services; skips the test where this machine cannot run them."""
    try:
        operations.start(lab, names)
    except Unavailable as fault:
        missing(str(fault))
    return lab
