"""What a Redis that is not as expected replies with."""

from types import SimpleNamespace

import pytest
import redis

from osbench.common.errors import StoreError, StoreMissing, StoreUnreachable
from osbench.common.protocol import wire
from osbench.common.protocol.redis_client import check, connect, translating_errors


@pytest.mark.parametrize("host", ["a" * 64, "a..b"])
def test_a_host_that_is_no_name_is_unreachable(host):
    url = f"redis://{host}/0"

    with pytest.raises(StoreMissing, match="not a host name"):
        check(connect(url, 1.0), url)


def test_no_more_names_of_workers_are_read_than_are_used(monkeypatch):
    monkeypatch.setattr(wire, "NAMES_MOST", 3)
    read = []

    def names(key, count):
        for number in range(9):
            read.append(number)
            yield b"%d" % number

    assert wire.Wire(SimpleNamespace(sscan_iter=names)).names() == [b"0", b"1", b"2"]
    assert read == [0, 1, 2]


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
    with pytest.raises(StoreError, match=r"install Redis 6\.2"):
        check(Foreign(version), "redis://a")


@pytest.mark.parametrize("code", ["BUSY", "MISCONF", "NOREPLICAS", "WRONGTYPE"])
@pytest.mark.parametrize(
    "before", ["", "Command # 1 (XADD a b hunter2) of pipeline caused error: "]
)
def test_what_passes_is_told_without_what_was_written(code, before):
    with (
        pytest.raises(StoreUnreachable) as told,
        translating_errors("redis://ann:hunter2@h:6379/0"),
    ):
        raise redis.ResponseError(f"{before}{code} not now")

    assert str(told.value) == f"Redis at redis://***@h:6379/0 cannot serve now: {code} not now"


def test_an_error_that_stays_is_told_without_what_was_written():
    with pytest.raises(StoreError) as told, translating_errors("redis://ann:hunter2@h:6379/0"):
        raise redis.ResponseError("Command # 1 (XADD a hunter2) of pipeline caused error: ERR no")

    assert str(told.value).startswith("Redis at redis://***@h:6379/0 refused a command: ERR no; ")
