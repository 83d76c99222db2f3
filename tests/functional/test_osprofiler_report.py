"""Nothing that `osprofiler trace show --html` shows of a trace is missing from ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from osprofiler import notifier, profiler
from osprofiler.drivers.base import get_driver

from helpers.commands import environment
from helpers.result_rows import row_of
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.collector import Collection, CollectionSettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.collection.trace_set import of_run
from osbench.edges.traces.output.waterfalls import Waterfall, WaterfallRow, waterfall
from servers import RedisServer
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

#: The command `osprofiler`, whether or not its script is installed.
OSPROFILER = (sys.executable, "-c", "from osprofiler.cmd.shell import main; main()")

KEEP = Retention(slowest=10, failed=10, share=1.0, limit=1 << 30)


@pytest.fixture
def base_id(redis: RedisServer) -> Iterator[str]:
    """The id of a trace that OSProfiler has written: everything its hooks write of services."""
    driver = get_driver(redis.url, conf={}, project="keystone", service="keystone-api")
    notifier.set(driver.notify)
    try:
        yield written(driver)
    finally:
        profiler.clean()
        notifier.set(lambda *_, **__: None)


def written(driver: Any) -> str:
    profiler.init("key")
    found = profiler.get()
    request = {
        "path": "/v3/users/0f2a4d7e1b6c4d7e8f90a1b2c3d4e5f6",
        "query": "name=al%20ice&token=s3cret",
        "method": "POST",
        "scheme": "https",
    }
    with profiler.Trace("osbench.iteration", info={"run": "r", "iteration": 1}):
        with profiler.Trace("wsgi", info={"request": request}):
            profiler.start("db", info={"db": {"statement": "SELECT 1", "params": ["a", 7, None]}})
            profiler.stop({"db": {"result": "[(1,)]"}})
            with pytest.raises(ValueError, match="no such user"):
                call(1, role="admin", nested={"deep": [1, {"er": "</script>"}]})
            profiler.start("neutron-get-port", info={"requests": {"method": "GET", "path": "/a"}})
            profiler.stop({"requests": {"status_code": 200}, "took": "1"})
            profiler.start("both", info={"value": "before", "db": {"x": 1}})
            profiler.stop({"value": "after", "db": {"x": 2}})
        # the caller's span was never written
        driver.notify(
            {
                "name": "orphan-start",
                "base_id": found.get_base_id(),
                "trace_id": "5c1b1c5e-0000-4000-8000-000000000001",
                "parent_id": "5c1b1c5e-0000-4000-8000-000000000000",
                "timestamp": "2026-04-01T10:00:00.000001",
                "info": {"host": "elsewhere", "request": {"path": "/lost"}},
            }
        )
        # neither was the stop of this one
        driver.notify(
            {
                "name": "unfinished-start",
                "base_id": found.get_base_id(),
                "trace_id": "5c1b1c5e-0000-4000-8000-000000000002",
                "parent_id": found.get_id(),
                "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
                "info": {"host": "elsewhere", "n": 3},
            }
        )
        return str(found.get_base_id())


@profiler.trace("rpc", hide_args=False)
def call(number: int, **named: Any) -> None:
    raise ValueError("no such user: alice")


def collected(tmp_path: Path, redis: RedisServer, base_id: str, everything: bool) -> Waterfall:
    """The trace as it is read from the archive of a run."""
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    row = row_of(
        1,
        Outcome.OK,
        0,
        1,
        10**9,
        0,
        0,
        (),
        (bytes.fromhex(base_id.replace("-", "")), None, b""),
    )
    columns = encode_rows([row], (), 0)
    directory.keep([{"workload": 0, "incarnation": "w", "columns": columns, "failures": []}])
    directory.close()
    settings = CollectionSettings(retention=KEEP, late_s=0.0, expiry_s=600, everything=everything)
    Collection(directory, ["a"], settings, warmup_ns={}).collect(redis.url)
    (trace,) = Archive(directory.path).traces()
    return waterfall(of_run(directory), trace)


def osprofilers(tmp_path: Path, redis: RedisServer, base_id: str) -> list[dict[str, Any]]:
    """The nodes of the page that `osprofiler trace show --html` makes, without the total."""
    page = tmp_path / "trace.html"
    subprocess.run(
        [*OSPROFILER, "trace", "show", base_id, "--html", "--out", str(page)],
        env=environment(tmp_path) | {"OSPROFILER_CONNECTION_STRING": redis.url},
        check=True,
        timeout=PATIENCE_S,
    )
    found = re.search(r"var OSProfilerData = (.*?);\n", page.read_text("utf-8"), re.S)
    assert found is not None
    waiting = json.loads(found[1])["children"]
    nodes = []
    while waiting:
        nodes.append(waiting.pop())
        waiting += nodes[-1]["children"]
    return nodes


def flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Each value of a JSON object with its dotted name, as text."""
    if isinstance(value, dict) and value:
        for inner, part in value.items():
            yield from flat(part, f"{name}.{inner}" if name else inner)
    else:
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def check(node: dict[str, Any], row: WaterfallRow, base_id: str) -> None:
    """Every field of a node of OSProfiler's page is in our row."""
    info = dict(node["info"])
    assert info.pop("name") == row.name.split("-")[0]
    assert (info.pop("project"), info.pop("service")) == (row.project, row.service)
    assert info.pop("host") == row.host
    assert (node["trace_id"], node["parent_id"]) == (row.span_id, row.parent_id)
    exception = info.pop("exception", "None")
    assert exception == (row.error or "None")
    # whole milliseconds of the page, of which each end is cut
    took_ms = info.pop("finished") - info.pop("started")
    if not row.marks:
        assert took_ms == pytest.approx(1000 * row.duration_s, abs=1.01)
    ours = set(row.fields)
    for key, payload in info.items():
        event = key.removeprefix("meta.raw_payload.")
        is_stop = event.endswith("-stop")
        assert payload.pop("name") == event == f"{row.name}-{'stop' if is_stop else 'start'}"
        assert payload.pop("base_id") == base_id
        assert payload.pop("trace_id") == row.span_id
        assert payload.pop("parent_id") == row.parent_id
        assert payload.pop("project") == row.project
        assert payload.pop("service") == row.service
        assert payload.pop("timestamp") == (row.stopped_at if is_stop else row.started_at)
        said = payload.pop("info")
        assert said.pop("host") == row.host
        for name, value in flat(said, ""):
            if not name:
                continue
            parts = name.split(".")
            # the two events of a span may say different things under one name
            before = {f"{'.'.join(parts[:at])} (start)" for at in range(1, len(parts) + 1)}
            assert any((one, value) in ours for one in {name, *before}), (name, value, ours)
        assert payload == {}


def test_every_field_of_osprofilers_page_is_in_ours(
    tmp_path: Path, redis: RedisServer, base_id: str
) -> None:
    # before ours: collecting deletes nothing that is kept, but sets an expiry
    theirs = osprofilers(tmp_path, redis, base_id)

    ours = collected(tmp_path, redis, base_id, everything=True)

    assert ours.trace_id == base_id
    rows = {row.span_id: row for row in (*ours.rows, *ours.left_out)}
    assert {node["trace_id"] for node in theirs} == rows.keys()
    assert len(theirs) == 8
    for node in theirs:
        check(node, rows[node["trace_id"]], base_id)
    assert [row.left_out for row in ours.left_out] == ["orphan"]
    (unfinished,) = (row for row in ours.rows if row.name == "unfinished")
    assert unfinished.stopped_at == ""
    # and children are where the page has them
    depths = {row.span_id: row.depth for row in ours.rows}
    for node in theirs:
        for child in node["children"]:
            assert depths[child["trace_id"]] == depths[node["trace_id"]] + 1


def test_what_may_be_secret_is_not_kept_unless_asked_for(
    tmp_path: Path, redis: RedisServer, base_id: str
) -> None:
    ours = collected(tmp_path, redis, base_id, everything=False)

    text = repr(ours)
    for secret in ("s3cret", "alice", "al%20ice", "admin", "[(1,)]", "0f2a4d7e", "before"):
        assert secret not in text
    rows = {row.name: row for row in ours.rows}
    # what remains: the request without its ids, the statement without values, the type of error
    assert rows["wsgi"].detail == "POST /v3/users/{id}"
    assert rows["db"].detail == "SELECT ?"
    assert rows["rpc"].error == "ValueError"
    assert ("etype", "ValueError") not in rows["rpc"].fields
