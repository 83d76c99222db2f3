"""Bodies of requests: changes of a load, one each, with a value that can be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.front.web.bodies import parse_change


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"workload": 1, "rate": 2.5}, {"workload": "1", "rate": 2.5}),
        ({"users": 0}, {"workload": None, "users": 0}),
        ({"workload": "shop", "pause": True}, {"workload": "shop", "pause": True}),
        ({"resume_load": True}, {"workload": None, "resume_load": True}),
    ],
)
def test_one_change_is_passed_on(asked: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert parse_change(json.dumps(asked).encode()) == wanted


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"7", b"{}", b"\xff", b"[" * 4000),
        *(b'{"rate": 1, "users": 2}', b'{"rate": 1, "more": 2}', b'{"workload": 1}'),
        *(b'{"rate": -1}', b'{"rate": NaN}', b'{"rate": Infinity}', b'{"rate": true}'),
        *(b'{"rate": "5"}', b'{"users": 1.5}', b'{"users": null}', b'{"pause": false}'),
        *(b'{"pause": 1}', b'{"workload": {}, "rate": 1}', b'{"workload": 1.5, "rate": 1}'),
        *(b'{"workload": true, "rate": 1}', b'{"workload": false, "rate": 1}'),
    ],
)
def test_what_asks_for_no_one_change_is_refused_with_the_form(body: bytes) -> None:
    with pytest.raises(UsageError, match=r'write \{"workload": N'):
        parse_change(body)
