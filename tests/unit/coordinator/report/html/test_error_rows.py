"""Kinds of errors as the page lists them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from helpers.report_facts import facts_of
from osbench.coordinator.report.html.error_rows import ErrorRow, error_rows
from osbench.coordinator.report.html.workload_facts import workloads_of
from osbench.coordinator.report.page_facts import gather


def rows(tmp_path: Path, errors: list[dict[str, Any]], failed_s: Any = None) -> list[ErrorRow]:
    facts = facts_of(tmp_path)
    like = facts.summary["workloads"][0]["errors"][0]
    facts.summary["workloads"][0]["errors"] = [like | error for error in errors]
    return error_rows(replace(workloads_of(gather(facts))[0], failed_s=failed_s or {}))


def test_each_kind_of_a_type_has_its_own_line_over_time(tmp_path: Path) -> None:
    errors = [{"message": "lamp 1", "count": 2}, {"message": "desk 1", "count": 1}]
    times = {
        ("GatewayTimeout", "lamp *"): np.array([0.1, 9.0]),
        ("GatewayTimeout", "desk *"): np.array([5.0]),
    }

    lamp, desk = rows(tmp_path, errors, times)

    assert (lamp.first_s, lamp.last_s, desk.first_s) == (0.1, 9.0, 5.0)
    assert (str(lamp.spark).count("<rect"), str(desk.spark).count("<rect")) == (2, 1)


def test_a_live_page_has_no_line_for_kinds_that_share_a_type(tmp_path: Path) -> None:
    errors = [{"message": "lamp 1", "count": 2}, {"message": "desk 1", "count": 1}]

    several, single = rows(tmp_path, errors), rows(tmp_path, errors[:1])

    assert [str(row.spark) for row in several] == ["", ""]
    assert "<rect" in str(single[0].spark)


def test_the_name_of_a_class_is_not_cut_before_300_letters(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [{"type": "E" * 300}])

    assert row.type == "E" * 300
