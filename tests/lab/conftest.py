"""Fixtures of the lab: real OpenStack services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from keystone_server import Keystone, keystone_server


@pytest.fixture(scope="session")
def keystone() -> Iterator[Keystone]:
    """One Keystone for all tests; its first start on a machine installs it."""
    with keystone_server() as server:
        yield server
