"""What a Redis that is not as expected replies with."""

import pytest
import redis

from osbench.common.errors import StoreError, StoreUnreachable
from osbench.common.protocol.redis_client import check, reached


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


@pytest.mark.parametrize("code", ["BUSY", "MISCONF", "NOREPLICAS", "WRONGTYPE"])
@pytest.mark.parametrize(
    "before", ["", "Command # 1 (XADD a b hunter2) of pipeline caused error: "]
)
def test_what_passes_is_told_without_what_was_written(code, before):
    with pytest.raises(StoreUnreachable) as told, reached("redis://ann:hunter2@h:6379/0"):
        raise redis.ResponseError(f"{before}{code} not now")

    assert str(told.value) == f"Redis at redis://***@h:6379/0 cannot serve now: {code} not now"


def test_an_error_that_stays_is_told_without_what_was_written():
    with pytest.raises(StoreError) as told, reached("redis://ann:hunter2@h:6379/0"):
        raise redis.ResponseError("Command # 1 (XADD a hunter2) of pipeline caused error: ERR no")

    assert str(told.value) == "Redis at redis://***@h:6379/0: ERR no"
