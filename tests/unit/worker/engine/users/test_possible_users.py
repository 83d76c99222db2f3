"""Virtual users beyond what a worker process can have are refused before the load."""

from __future__ import annotations

from pathlib import Path

import pytest

from osbench.common.errors import FleetError
from osbench.worker.engine.users import possible_users
from osbench.worker.engine.users.possible_users import limits, refuse_too_many


def reader(**numbers: int) -> possible_users.Read:
    """Reads files of the kernel and of a container by their names, with _ for other signs."""
    return lambda path: numbers.get(path.name.replace(".", "_").replace("-", "_"))


def least(found: list[tuple[int, str]]) -> tuple[int, str]:
    return min(found, key=lambda limit: limit[0])


def test_few_users_are_possible_anywhere() -> None:
    refuse_too_many(20, 2, coroutines=False)
    refuse_too_many(20, 2, coroutines=True)
    # arrivals start users only as they need them
    refuse_too_many(0, 2, coroutines=False)


@pytest.mark.parametrize(
    ("coroutines", "said"), [(False, "as threads: possible are"), (True, "as coroutines: possible")]
)
def test_a_million_are_refused_with_what_is_possible(coroutines: bool, said: str) -> None:
    with pytest.raises(FleetError) as caught:
        refuse_too_many(1_000_000, 2, coroutines=coroutines)

    message = str(caught.value)
    assert message.startswith("1,000,000 virtual users are requested of each worker process")
    assert said in message
    assert ("`async def`" in message) != coroutines


def test_processes_of_a_container_share_its_memory_and_its_threads() -> None:
    memory = reader(memory_max=300 << 20, memory_current=44 << 20)
    threads = reader(pids_max=500, pids_current=100)

    assert least(limits(2, coroutines=True, read=memory))[0] == (128 << 20) // (16 * 1024)
    assert least(limits(4, coroutines=False, read=memory))[0] == (64 << 20) // (64 * 1024)
    assert least(limits(4, coroutines=False, read=threads)) == (
        100,
        "threads: the container's limit of processes is 500",
    )
    assert least(limits(4, coroutines=False, read=reader(pid_max=8000)))[0] <= 2000


def test_a_file_that_says_max_or_is_missing_is_no_limit(tmp_path: Path) -> None:
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "some").write_text("12\n")

    names = ("max", "some", "none")
    assert [possible_users._number(tmp_path / name) for name in names] == [None, 12, None]
