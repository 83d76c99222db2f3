"""Kinds of errors for display, and when each happened."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.sample_reports import columns
from osbench.coordinator.report.error_kinds import FailureTimes, kinds_of
from osbench.coordinator.report.iterations import Errors, Reported
from osbench.coordinator.report.model.workload_parts import ErrorReport
from osbench.coordinator.results.accounting.error_groups import shown_kind

UUID = "0b2c7f0e-8e2f-4b6e-9a3e-3f1f4b7f2a10"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"server {UUID} is gone", "server * is gone"),
        ("server 0b2c7f0e-345b-4b6e-9a3e-3f1f4b7f345b is gone", "server * is gone"),
        ("10.0.0.17 refused after 1.25s", "* refused after *"),
        ("image deadbeef01 of 17 is gone", "image * of * is gone"),
        ("no end after 31.5ms or 2s", "no end after * or *"),
        ("<Flow object at 0x7f3a2b10> failed", "<Flow object at *> failed"),
        ("order answered 503, expected 201", "order answered 503, expected 201"),
        ("GET http://a/users/ann.b@shop.test/x: timed out", "GET http://a/users/*/x: timed out"),
        ("no user ann%40shop.test, x@y", "no user *, *"),
        ("order 48f281 of req_9c01ab", "order * of req_*"),
        ("order abcdef was refused", "order * was refused"),
        ("TLS 1.2 face, 5 bad beefs", "TLS * face, * bad beefs"),
        ("HTTP 504 from keystone v3", "HTTP 504 from keystone v3"),
    ],
)
def test_numbers_and_ids_are_no_part_of_a_kind(message: str, kind: str) -> None:
    assert shown_kind(message) == kind


def error(message: str, count: int, first: int) -> ErrorReport:
    return ErrorReport(type="E", message=message, count=count, first_iteration=first)


def test_errors_of_a_kind_are_one_with_their_sum_and_without_what_differs() -> None:
    rare = ErrorReport(type="F", message="lamp 7", count=4, first_iteration=9)

    found = [one.error for one in kinds_of([error("lamp 7", 3, 5), rare, error("lamp 8", 2, 1)])]

    assert [(one.type, one.message, one.count, one.first_iteration) for one in found] == [
        ("E", "lamp *", 5, 1),
        ("F", "lamp 7", 4, 9),
    ]


def test_each_kind_has_the_instants_of_its_own_failures() -> None:
    made = columns(400)
    # described only after the rows, as blocks may come in any order
    known: Errors = {0: ("", "", "")}
    times = FailureTimes()

    times.add(Reported(0, "w1", made, known))
    times.add(Reported(0, "w2", made, {1: ("E", "lamp 8", "")}))
    known[1] = ("E", "lamp 7", "")

    ((key, instants),) = times.by_kind().items()
    assert key == (0, ("E", "lamp *"))
    assert np.allclose(instants, [2, 2, 4, 4])
