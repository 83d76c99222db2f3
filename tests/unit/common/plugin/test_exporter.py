"""The columns of iterations in exports: each field of a row is in one."""

from __future__ import annotations

from typing import get_args

import pytest

from osbench.common.plugin.exporter import ITERATION_COLUMNS, IterationRow, Kind, json_values

ROW = IterationRow(0, 1, "ok", 1, 2, 9, 0, "", "", "", "w", warmup=False)
DROPPED = ROW._replace(outcome="dropped_late", started_ns=None, ended_ns=None, worker="")


def test_columns_have_names_of_their_own_and_known_kinds() -> None:
    names = [one.name for one in ITERATION_COLUMNS]

    assert len(set(names)) == len(names)
    assert {one.kind for one in ITERATION_COLUMNS} <= set(get_args(Kind))


@pytest.mark.parametrize("field", IterationRow._fields)
def test_each_field_of_a_row_is_in_a_column(field: str) -> None:
    value = getattr(ROW, field)
    other = not value if isinstance(value, bool) else f"{value}x" if value in ("", "ok") else 7

    assert json_values(ROW._replace(**{field: other}), None) != json_values(ROW, None)


def test_seconds_are_floats_and_instants_are_of_the_clock() -> None:
    found = json_values(ROW, 100.0)

    assert (found["due_s"], found["service_s"], found["started_at"]) == (1e-9, 7e-9, 100.0 + 2e-9)
    assert json_values(ROW, None)["started_at"] is None


def test_what_an_iteration_does_not_have_is_none() -> None:
    found = json_values(DROPPED, 100.0)

    assert [name for name, value in found.items() if value is None] == [
        *("started_at", "started_s", "service_s", "response_s", "start_lag_s"),
        *("error_type", "error", "trace_id", "worker"),
    ]
