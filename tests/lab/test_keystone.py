"""The lab's Keystone is a real one, and traces."""

from __future__ import annotations

import pytest
from osprofiler import profiler
from osprofiler.drivers import base

from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


def test_keystone_issues_a_token_and_lists_itself_in_the_catalogue(keystone: Lab) -> None:
    openstack = admin(keystone)

    assert openstack.get_token()
    assert openstack.get_endpoint(service_type="identity").rstrip("/") == keystone.auth_url


def test_keystone_leaves_the_spans_of_a_traced_request_in_redis(keystone: Lab) -> None:
    profiler.init(keystone.hmac_key)
    try:
        trace_id = profiler.get().get_base_id()
        admin(keystone).get_token()
    finally:
        profiler.clean()

    store = base.get_driver(keystone.trace_store, conf={})
    report = store.get_report(trace_id)
    assert report["stats"]["wsgi"]["count"] >= 1
    assert report["stats"]["db"]["count"] >= 3


def test_keystone_leaves_nothing_of_a_request_that_is_not_traced(keystone: Lab) -> None:
    client = keystone.traces.client()
    before = set(client.scan_iter())

    admin(keystone).get_token()

    # traces of other tests may expire meanwhile
    assert set(client.scan_iter()) <= before
