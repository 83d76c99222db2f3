"""What the bench starts next to a lab's service: with OSProfiler, without it, and counted."""

from __future__ import annotations

import contextlib

import pytest
import requests
from osprofiler import profiler, web

from bench.copies import INSIDE, Like, copies, note_requests
from services.catalogue import admin
from services.lab import Lab

# they are what `make bench` starts, which ends with an error if a copy does not work
pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("whole")]


def signed(lab: Lab) -> tuple[str, dict[str, str]]:
    """A new trace's id, and headers that services write spans for."""
    profiler.clean()
    trace = profiler.init(lab.hmac_key).get_base_id()
    headers = web.get_trace_id_headers()
    profiler.clean()
    return trace, headers


def test_a_service_without_osprofiler_answers_alike_and_writes_no_event(keystone: Lab) -> None:
    arms = {
        # its configuration has it enabled, so that only its absence keeps it from tracing
        "absent": Like(profiler=True, launcher=(INSIDE / "serve_untraced.py",)),
        "disabled": Like(),
        "enabled": Like(profiler=True),
    }
    token = {"X-Auth-Token": str(admin(keystone).get_token())}
    answers, events = {}, {}

    with (
        copies(keystone, "keystone", arms) as running,
        contextlib.closing(keystone.traces.client()) as store,
    ):
        for name, copy in running.items():
            trace, headers = signed(keystone)
            url = f"http://127.0.0.1:{copy.port}/v3/projects"
            answer = requests.get(url, headers=token | headers, timeout=60)
            answers[name] = sorted(one["name"] for one in answer.json()["projects"])
            events[name] = store.llen(f"osprofiler_opt:{trace}")

    assert answers["absent"] == answers["disabled"] == answers["enabled"] != []
    assert events["absent"] == 0
    assert events["enabled"] > 2
    left = [name for name in keystone.processes.names() if name.startswith("keystone-")]
    assert left == []


def test_each_request_to_a_service_is_noted(keystone: Lab) -> None:
    notes = note_requests(keystone, "keystone")
    before = len(notes.read_text().split())

    for _ in range(3):
        requests.get(f"{keystone.auth_url}/", timeout=60).raise_for_status()

    seconds = [float(line) for line in notes.read_text().split()]
    assert len(seconds) == before + 3
    assert seconds == sorted(seconds)
