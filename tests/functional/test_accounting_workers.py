"""A worker that waits for a name server under load; tests/world has those that die."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.arena import SLOW_NAME, Arena, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]


@pytest.fixture
def found() -> Iterator[Arena]:
    with arena() as made:
        yield made


def test_a_slow_name_server_silences_nobody(found: Arena) -> None:
    slow = found.start_host(address=SLOW_NAME)
    found.start_host()
    found.await_free()
    load = found.start_load({"constant": {"times": 3000, "concurrency": 4}})
    found.await_started(load, 50)

    slow.slow_names.touch()
    slow.proxy.cut(0.0)

    code = found.finish(load)
    sums = found.exact(load)
    assert (code, sums["ok"]) == (0, 3000), (sums, load.command.said())
    summary = found.summary(load)
    assert not [one for one in summary["workloads"][0]["workers"] if one["lost"]]
    assert not [note for note in summary["notes"] if "silent" in note]
    slow.slow_names.unlink()
    assert wait_until(found.are_free)
