"""What a Redis that is not as expected replies with."""

import pytest

from osbench.common.errors import StoreError
from osbench.common.protocol.redis_client import check


class Foreign:
    """A server that says it is of some version."""

    def __init__(self, version):
        self.version = version

    def info(self, section):
        return {"redis_version": self.version, "maxmemory_policy": "noeviction"}


@pytest.mark.parametrize("version", ["6.2.0", "7.4-rc1", "9" * 5000])
def test_a_version_that_is_new_enough_is_taken(version):
    check(Foreign(version), "redis://a")


@pytest.mark.parametrize("version", ["x", "", "6.x", "5.0.14", "\x1b[2J"])
def test_an_unknown_version_is_refused(version):
    with pytest.raises(StoreError, match=r"needs 6\.2"):
        check(Foreign(version), "redis://a")
