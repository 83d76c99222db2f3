"""Errors of requests to a cloud."""

from __future__ import annotations

from osbench.edges.openstack.common.request_errors import RequestFailed


def test_a_failure_names_its_request_and_similar_ones_are_of_the_same_kind() -> None:
    failures = [
        RequestFailed(f"GET /servers/{digit * 32}: 500", status=500, request_id=f"req-{digit}")
        for digit in "ab"
    ]

    assert [str(one) for one in failures] == [
        f"GET /servers/{digit * 32}: 500 (for example request req-{digit})" for digit in "ab"
    ]
    assert {one.kind for one in failures} == {"GET /servers/*: 500"}
    assert {one.status for one in failures} == {500}
    assert str(RequestFailed("no JSON", status=200)) == "no JSON"
