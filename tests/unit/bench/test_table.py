from __future__ import annotations

import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bench import machine as machine_module
from bench.comparison import Comparison, Target, middle
from bench.document import table_of
from bench.machine import disturbed_rows
from bench.table import amount, footer, spread, to_json, to_table

RATE = Comparison(
    row="noop",
    title="no-op iterations, 2 workers",
    unit="1/s",
    osbench=(900.0, 1000.0, 800.0),
    peer_name="Locust",
    peer=(300.0, 500.0, 400.0),
    target=Target(bound=1.5),
)
COUNT = Comparison(
    row="commands",
    title="commands per iteration",
    unit="commands",
    osbench=(0.02, 0.005, 0.004),
    target=Target(bound=0.01, at_most=True),
)
MACHINE = {
    "cores": 2,
    "system": "Linux",
    "python": "3.11",
    "osbench": "0.1",
    "peers": {"locust": "2.47"},
    "load": {"noop": [0.5, 2.25]},
}

positive = st.floats(min_value=1e-6, max_value=1e9)


def test_the_ratio_is_the_median_of_the_rounds_ratios() -> None:
    assert RATE.ratios == (3.0, 2.0, 2.0)
    assert RATE.judged == 2.0
    assert RATE.reached


def test_without_a_peer_the_value_itself_is_judged() -> None:
    assert COUNT.ratios == ()
    assert COUNT.judged == 0.005
    assert COUNT.reached


@given(st.lists(positive, min_size=1, max_size=9), positive)
def test_what_changes_a_whole_round_does_not_change_the_ratio(
    rounds: list[float], factor: float
) -> None:
    peers = tuple(value / factor for value in rounds)

    one = Comparison(
        row="r",
        title="t",
        unit="u",
        osbench=tuple(rounds),
        peer_name="p",
        peer=peers,
        target=Target(bound=1),
    )

    assert one.judged == pytest.approx(factor, rel=1e-6)


@pytest.mark.parametrize(
    ("target", "value", "reached"),
    [
        (Target(bound=1.5), 1.5, True),
        (Target(bound=1.5), 1.49, False),
        (Target(bound=0.5, at_most=True), 0.5, True),
        (Target(bound=0.5, at_most=True), 0.51, False),
        (Target(bound=1.5), math.nan, False),
        (Target(bound=0.5, at_most=True), math.nan, False),
    ],
)
def test_a_target_includes_its_bound(target: Target, value: float, reached: bool) -> None:
    assert target.reached(value) is reached


def test_a_peer_that_did_nothing_reaches_no_target() -> None:
    one = Comparison(
        row="r",
        title="t",
        unit="u",
        osbench=(1.0, 1.0, 1.0),
        peer_name="p",
        peer=(1.0, 0.0, 1.0),
        target=Target(bound=0.1),
    )

    assert math.isnan(one.judged)
    assert not one.reached
    assert to_json([one], left_out={}, failed={}, machine=MACHINE)["comparisons"][0]["ratio"] == {
        "median": None,
        "least": 1.0,
        "most": 1.0,
        "rounds": [1.0, None, 1.0],
    }


def test_a_measurement_without_a_promise_has_no_verdict() -> None:
    one = Comparison(row="resting", title="t", unit="ms", osbench=(1.0,))
    out = io.StringIO()

    Console(file=out, width=140).print(to_table([one]))

    assert one.reached is None
    (line,) = [line for line in out.getvalue().splitlines() if line.startswith("│")]
    assert [cell.strip() for cell in line.split("│")[1:-1]] == [
        "resting",
        "t, ms",
        "1.00",
        *[""] * 4,
    ]
    (entry,) = to_json([one], left_out={}, failed={}, machine=MACHINE)["comparisons"]
    assert entry["target"] is None
    assert entry["reached"] is None


def test_rounds_of_both_sides_belong_together() -> None:
    with pytest.raises(ValueError, match="3 rounds, 1 of peer"):
        Comparison(
            row="r",
            title="t",
            unit="u",
            osbench=(1.0, 1.0, 1.0),
            peer_name="p",
            peer=(1.0,),
            target=Target(bound=1),
        )
    with pytest.raises(ValueError, match="no round"):
        Comparison(row="r", title="t", unit="u", osbench=(), target=Target(bound=1))


@given(st.lists(positive, min_size=1, max_size=9))
def test_the_middle_lies_within_the_range(values: list[float]) -> None:
    assert min(values) <= middle(values) <= max(values)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1_234_567, "1,230,000"),
        (999.6, "1,000"),
        (33.04, "33.0"),
        (0.05523, "0.0552"),
        (-4.2, "-4.20"),
        (math.nan, "?"),
    ],
)
def test_amounts_have_three_significant_digits(value: float, text: str) -> None:
    assert amount(value) == text


def test_a_single_round_has_no_range() -> None:
    assert spread((5.0,)) == "5.00"
    assert spread((5.0, 7.0, 6.0)) == "6.00\n(5.00 - 7.00)"


def test_the_table_shows_both_sides_ratio_target_and_verdict() -> None:
    out = io.StringIO()
    missed = Comparison(
        row="memory",
        title="growth",
        unit="MB",
        osbench=(9.0,),
        target=Target(bound=5, at_most=True),
    )

    Console(file=out, width=140).print(to_table([RATE, COUNT, missed]))

    lines = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in out.getvalue().splitlines()
        if line.startswith("│")
    ]
    assert lines[0] == [
        "noop",
        "no-op iterations, 2 workers, 1/s",
        "900",
        "Locust",
        "2.000",
        ">= 1.5 x",
        "yes",
    ]
    assert lines[1][2:5] == ["(800 - 1,000)", "400", "(2.000 - 3.000)"]
    assert lines[3][2:] == ["0.00500", "", "", "<= 0.01", "yes"]
    assert lines[-1] == ["memory", "growth, MB", "9.00", "", "", "<= 5", "no"]


def test_json_holds_every_round_and_what_is_missing() -> None:
    found = to_json(
        [RATE, COUNT],
        left_out={"http": "apt-get install nginx-light"},
        failed={"lag": "it broke"},
        machine=MACHINE,
    )

    assert json.loads(json.dumps(found, allow_nan=False)) == found
    rate, count = found["comparisons"]
    assert rate["osbench"]["rounds"] == [900.0, 1000.0, 800.0]
    assert rate["peer"]["name"] == "Locust"
    assert rate["peer"]["median"] == 400.0
    assert rate["ratio"] == {"median": 2.0, "least": 2.0, "most": 3.0, "rounds": [3.0, 2.0, 2.0]}
    assert rate["target"] == {"of": "ratio", "at_least": 1.5}
    assert rate["reached"] is True
    assert count["peer"] is None
    assert count["ratio"] is None
    assert count["target"] == {"of": "osbench", "at_most": 0.01}
    assert found["left_out"] == {"http": "apt-get install nginx-light"}
    assert found["failed"] == {"lag": "it broke"}
    assert found["machine"]["cores"] == 2


def test_the_footer_names_cores_versions_and_load() -> None:
    text = footer(MACHINE)

    assert "2 cores" in text
    assert "locust 2.47" in text
    assert "noop 0.5 - 2.25" in text


def test_the_document_has_what_the_last_bench_of_each_row_measured() -> None:
    earlier, later = (
        to_json(rows, left_out={}, failed={}, machine={**MACHINE, "load": loads})
        for rows, loads in (
            ([RATE, COUNT], {"noop": [0.5, 2.25], "commands": [3.0, 4.0]}),
            ([COUNT], {"commands": [0.1, 0.2]}),
        )
    )

    lines = table_of([json.loads(json.dumps(one)) for one in (earlier, later)]).splitlines()

    assert lines[2:4] == [
        "| `noop` | no-op iterations, 2 workers | 900 1/s | 400 Locust | 2.000 (2.000 - 3.000)"
        " | at least 1.5 x | yes |",
        "| `commands` | commands per iteration | 0.00500 commands |  |  | at most 0.01 | yes |",
    ]
    assert lines[-1] == (
        "Load average before and after each row: `noop` 0.5 and 2.25, `commands` 0.1 and 0.2."
    )


def test_rows_during_which_other_programs_ran_are_marked() -> None:
    machine = {**MACHINE, "others": {"noop": 0.1, "commands": 0.4}}
    document = to_json([RATE, COUNT], left_out={}, failed={}, machine=machine)
    document["machine"]["load"]["commands"] = [0.1, 0.2]
    console = Console(width=200, file=io.StringIO())
    console.print(to_table([RATE, COUNT], disturbed_rows(machine)))
    shown = console.file.getvalue()  # type: ignore[attr-defined]

    assert disturbed_rows(machine) == ["commands"]
    assert disturbed_rows(MACHINE) == []
    assert shown.count("(disturbed)") == 1
    assert "cores that other programs took during each row: noop 0.1, commands 0.4" in footer(
        machine
    )
    assert table_of([document]).endswith("more than 0.1 cores during `commands`.")
    # a row that was measured again when the machine was quiet
    again = {**document, "machine": {**document["machine"], "others": {"commands": 0.0}}}
    assert "more than" not in table_of([document, again])


def test_cpu_of_other_programs_is_without_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own = iter([100.0, 108.0]), iter([7.0, 12.0])
    monkeypatch.setattr(machine_module, "_busy_s", lambda: next(busy))
    monkeypatch.setattr(machine_module, "_own_s", lambda: next(own))
    monkeypatch.setattr(machine_module.time, "monotonic", iter([50.0, 60.0]).__next__)

    assert machine_module.OtherPrograms().cores() == 0.3


def test_time_of_the_machine_and_of_this_process_is_read() -> None:
    assert machine_module._busy_s() > machine_module._own_s() > 0
