"""Events of a run, folded from its journal: by the coordinator that wrote it, and by the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import DamagedRun
from osbench.coordinator.load.run.run_history import RunHistory
from osbench.coordinator.load.run.services import RunPort
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.marks import JOIN, LOSS, STOP, Mark
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: More iterations than any plan here has.
ALL = 1000


def history(*records: dict[str, Any]) -> RunHistory:
    found = RunHistory({0: "A.b", 1: "C.d"})
    for record in records:
        found.apply(record)
    return found


def lost(at_s: float, silent_s: float = 3.0, users: int = 4, **more: Any) -> dict[str, Any]:
    place = {"host": "h", "pid": 7, "label": ""}
    event = {"do": "lost", "mid": "m", "workload": 0, "at_s": at_s, "silent_s": silent_s}
    return {**event, "users": users, **place, **more}


def held(at_s: float, asked: int, users: int) -> dict[str, Any]:
    return {"do": "held", "workload": 0, "at_s": at_s, "asked": asked, "held": users}


def stop(why: str = "interrupted", at_s: float = 2.0) -> dict[str, Any]:
    return {"do": "stop", "workload": 0, "at_s": at_s, "why": why}


def close(**more: Any) -> dict[str, Any]:
    return {"do": "close", "workload": 0, "budget": 10, "allotted": 10, **more}


OPEN = {"do": "open", "epoch": 2}


def test_a_loss_is_told_by_the_next_coordinator_however_soon_this_one_was_killed(
    tmp_path: Path,
) -> None:
    nothing: Any = None
    directory = RunDirectory.create(str(tmp_path), "r")
    accounts = Accounts()
    port = RunPort(directory, accounts, history(), nothing, nothing)
    port.decide([accounts.enrolment("m", "h.7.aa")])
    port.decide([lost(10.0)])
    # killed: nothing else is written
    directory.close()

    again, found = Accounts(), history()
    again.fold(RunDirectory.of(str(tmp_path), "r"), found.apply)
    found.apply(OPEN)

    assert again.memberships["m"].lost
    assert found.losses() == (
        "A.b: worker h:7 fell silent 7 s into the load and was declared lost 3 s later",
    )
    assert found.marks(0, 0) == (
        Mark(
            kind=LOSS,
            from_s=7.0,
            to_s=10.0,
            label="h lost",
            text="Worker h:7 fell silent 7 s into the load and was declared lost 3 s later.",
        ),
    )
    assert found.marks(1, 0) == ()


@pytest.mark.parametrize(
    ("at_s", "silent_s", "said"),
    [
        (0.5, 0.25, "fell silent 0 s into the load and was declared lost 0 s later"),
        (1.0, 3.0, "fell silent 0 s into the load and was declared lost 1 s later"),
        (-0.3, 3.0, "fell silent before the load"),
    ],
)
def test_the_report_says_when_a_worker_fell_silent(at_s: float, silent_s: float, said: str) -> None:
    assert history(lost(at_s, silent_s)).losses() == (f"A.b: worker h:7 {said}",)


@pytest.mark.parametrize(
    "records",
    [
        # after the end of its workload; of none; of one that left; of an older release
        (close(), lost(10.0)),
        (lost(-0.3, workload=-1),),
        ({"do": "lost", "mid": "m"}, {"do": "heard", "mid": "m"}),
        ({"do": "again", "mid": "m"}, {"do": "sing", "song": 1}),
    ],
)
def test_other_losses_are_in_the_accounts_alone(records: tuple[dict[str, Any], ...]) -> None:
    found = history(*records)

    assert (found.losses(), found.marks(0, 0)) == ((), ())
    assert found.missing_user_s(0, 20.0) == 0.0


def test_a_worker_in_place_of_another_is_marked() -> None:
    place = {"host": "h", "pid": 8, "label": "rack-1"}

    (mark,) = history({"do": "joined", "mid": "m", "workload": 0, "at_s": 5.0, **place}).marks(0, 0)

    assert (mark.kind, mark.from_s, mark.label) == (JOIN, 5.0, "rack-1 joins")
    assert mark.text == "Worker h:8 took the place of a worker that was lost or left."


def test_a_worker_that_joins_is_marked() -> None:
    place = {"host": "h", "pid": 8, "label": "", "more": True}

    (mark,) = history({"do": "joined", "mid": "m", "workload": 0, "at_s": 5.0, **place}).marks(0, 0)

    assert (mark.kind, mark.label, mark.text) == (JOIN, "h joins", "Worker h:8 joined the load.")


def test_missing_users_count_while_they_are_asked_for() -> None:
    found = history(held(-0.3, 4, 0), held(2.0, 4, 1), held(3.0, 4, 5), held(5.0, 0, 0))

    assert found.missing_user_s(0, 100.0) == pytest.approx(2 * 4 + 1 * 3)


def test_missing_users_count_up_to_the_instant_of_a_report_and_of_the_end() -> None:
    found = history(held(0.0, 4, 2))
    under_load = found.missing_user_s(0, 3.0)

    found.apply(close(at_s=5.0))

    assert (under_load, found.missing_user_s(0, 9.0)) == (6.0, 10.0)


def test_the_users_of_a_lost_worker_are_missing_since_it_fell_silent() -> None:
    found = history(held(0.0, 4, 4), lost(10.0))

    assert found.missing_user_s(0, 10.0) == pytest.approx(12.0)


def test_nothing_is_missing_of_a_worker_that_fell_silent_after_the_stop() -> None:
    assert history(held(0.0, 4, 4), held(6.5, 0, 4), lost(10.0)).missing_user_s(0, 10.0) == 0.0
    assert history(held(0.0, 4, 4), held(8.0, 0, 4), lost(10.0)).missing_user_s(0, 10.0) == 4.0


def test_outages_of_a_server_are_one_sentence_after_what_came_before() -> None:
    away = {"do": "outage", "server": "Redis", "is_broker": False, "from_s": 1.0}

    found = history({**away, "lasted_s": 2.0}, lost(10.0), {**away, "lasted_s": 3.0})

    loss, outage = found.losses()
    assert loss.startswith("A.b: worker h:7")
    assert outage.startswith("the coordinator could not reach or use Redis 2 times, in all for 5 s")


def test_blocks_that_a_disk_has_lost_are_one_sentence() -> None:
    found = history(*({"do": "missing", "mid": "m", "numbers": some} for some in ([1, 2], [7])))

    (sentence,) = found.losses()
    assert sentence.startswith("the disk of the coordinator has lost 3 result blocks")


def test_a_stop_before_the_end_cuts_a_load_short() -> None:
    found = history(stop("sla"), close(planned=10))

    assert found.cut_short(0, started=9) == "sla"
    (mark,) = found.marks(0, started=9)
    assert (mark.kind, mark.from_s, mark.label) == (STOP, 2.0, "SLA failed")
    assert found.cut_short(1, started=0) is None


def test_a_stop_after_the_last_start_has_cut_nothing_short() -> None:
    found = history(stop())
    assert found.cut_short(0, started=ALL) == "interrupted"

    found.apply(close(planned=10))

    assert found.cut_short(0, started=10) is None
    assert found.marks(0, started=10) == ()


def test_a_load_that_only_a_time_ends_has_no_plan_that_could_be_complete() -> None:
    assert history(stop(), close(planned=None)).cut_short(0, started=ALL) == "interrupted"


def test_a_load_that_another_coordinator_goes_on_with_is_not_stopped_any_more() -> None:
    assert history(stop(), OPEN).cut_short(0, started=5) is None
    # it was over
    assert history(stop(), close(planned=10), OPEN).cut_short(0, started=5) == "interrupted"


def test_what_is_noted_is_known_at_once_and_written_with_the_next_decision(tmp_path: Path) -> None:
    nothing: Any = None
    directory = RunDirectory.create(str(tmp_path), "r")
    found = history()
    port = RunPort(directory, Accounts(), found, nothing, nothing)

    port.note(stop())
    written = list(directory.decisions())
    port.decide([OPEN])
    port.decide([])

    assert written == []
    assert [record["do"] for record in directory.decisions()] == ["stop", "open"]


@pytest.mark.parametrize(
    "record",
    [
        {"do": "held", "workload": 0},
        {"do": "joined", "mid": "m", "workload": 0, "at_s": "soon"},
        {"do": "fired", "workload": 0, "hook": 0, "times": 1, "result": "{"},
        {"do": "fired", "workload": 0, "hook": 0, "times": 1, "result": "[]"},
        {"do": "outage", "lasted_s": 1.0},
    ],
)
def test_an_event_of_another_shape_damages_the_journal(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    directory = RunDirectory.create(str(tmp_path), "r")
    directory.decide([record])

    with pytest.raises(DamagedRun, match="journal at byte 0 cannot be read"):
        Accounts().fold(directory, history().apply)


def absent(at_s: float, *zones: str) -> dict[str, Any]:
    return {"do": "zones", "workload": 0, "at_s": at_s, "absent": list(zones)}


def test_a_zone_without_workers_is_told_with_its_times() -> None:
    found = history(
        absent(-1.0),
        absent(5.0, "eu"),
        absent(5.0, "eu", ""),
        absent(9.2, ""),
        OPEN,
        absent(20.0, ""),
        absent(30.0, "eu", ""),
    )

    assert found.losses() == (
        "A.b: zone eu had no worker from 5 s to 9 s and from 30 s on: other zones, if any had "
        "workers, made its share of the load",
        "A.b: the zone of all other workers had no worker from 5 s on: other zones, if any had "
        "workers, made its share of the load",
    )
    marks = [(mark.kind, mark.label, mark.from_s, mark.to_s) for mark in found.marks(0, ALL)]
    assert marks == [
        (LOSS, "zone eu lost", 5.0, 9.2),
        (LOSS, "zone eu lost", 30.0, 30.0),
        (LOSS, "the zone of all other workers lost", 5.0, 5.0),
    ]
