"""Whatever is in a file: one documented error or what can be read, within bounds of memory."""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from yaml import YAMLError

from helpers.examples import examples
from helpers.hostile import bounded, changed, damaged, refuses
from helpers.result_rows import row_of
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ConfigError, DeploymentError, OsbenchError, TaskError, UsageError
from osbench.common.files.decompression import decompress
from osbench.common.files.yaml_documents import load_yaml
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix
from osbench.coordinator.results.storage import failure, run_listing
from osbench.coordinator.results.storage.frames import cut_torn_tail, read_frames
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline, summary_of
from osbench.coordinator.task.taskfile import document
from osbench.coordinator.task.taskfile.loading import read_document
from osbench.coordinator.task.taskfile.parsing import parse
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.counters.counter_file import read_counters
from osbench.edges.traces.counters.counter_series import figures_of
from osbench.edges.traces.model.spans import Span, Trace
from osbench.edges.traces.sources.files import open_file
from osbench.edges.traces.sources.pairing import event_of, pair

quick = settings(max_examples=examples(60))
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def as_json(document: Any) -> bytes:
    """With text in place of bytes."""
    return json.dumps(document, default=str).encode()


def framed(record: bytes) -> bytes:
    return struct.pack("<II", len(record), zlib.crc32(record)) + record


ROWS = [row_of(1, 1, 0, 10, 20, 0, 0, [0, -1, 11, 19, 0], None)]
BODY: dict[str, Any] = {
    "run": "r",
    "incarnation": "1-a",
    "workload": 0,
    "number": 1,
    "columns": encode_rows(ROWS, ["a"], 5),
}
FRAMES = framed(zstandard.compress(msgpack.packb(BODY))) + framed(b"two")


@quick
@given(damaged(FRAMES))
def test_frames_end_at_the_first_that_is_damaged_or_are_refused(content):
    with folder() as here, bounded():
        file = here / "journal"
        file.write_bytes(content)

        if refuses(lambda: list(read_frames(file)), OsbenchError):
            # a whole record behind it: no crash leaves that, so nothing is cut
            assert refuses(partial(cut_torn_tail, file), OsbenchError)
            assert file.read_bytes() == content
            return
        whole = list(read_frames(file))
        cut_torn_tail(file)

        assert list(read_frames(file)) == whole
        assert file.stat().st_size == sum(8 + len(record) for record in whole)


def test_a_length_of_4_gib_takes_no_memory(tmp_path):
    file = tmp_path / "blocks"
    file.write_bytes(framed(b"one") + struct.pack("<II", 2**32 - 1, 0) + bytes(100))

    with bounded(1 << 20):
        assert list(read_frames(file)) == [b"one"]


@quick
@given(changed(BODY), changed({"at": 1, "what": "cut"}))
def test_a_journal_and_blocks_of_others_are_read_or_refused(body, decision):
    with folder() as here, bounded(64 << 20):
        record = zstandard.compress(msgpack.packb(body))
        (here / "blocks").write_bytes(framed(record))
        (here / "journal").write_bytes(framed(msgpack.packb(decision)))
        run = RunDirectory(here)

        refuses(lambda: list(run.blocks()), OsbenchError)
        refuses(lambda: list(counted_rows(run)), OsbenchError)
        refuses(lambda: list(run.decisions()), OsbenchError)


@pytest.mark.parametrize("size", [2**62, 2**40, 3 << 30])
def test_a_frame_that_announces_much_is_not_decompressed(size):
    frame = bytearray(zstandard.compress(bytes(100)))
    # magic, descriptor: a content size of 8 bytes, one segment
    announced = bytes(frame[:4]) + b"\xe0" + struct.pack("<Q", size) + bytes(frame[6:])

    with bounded(1 << 20), pytest.raises(ValueError, match="it announces"):
        decompress(announced, 1 << 60)


def test_what_is_decompressed_is_bounded():
    bomb = zstandard.compress(bytes(200 << 20))

    with bounded(1 << 20), pytest.raises(ValueError, match="it announces"):
        decompress(bomb, 100 << 20)
    assert decompress(zstandard.compress(bytes(1 << 20)), 1 << 20) == bytes(1 << 20)


DOCUMENTS: dict[str, dict[str, Any]] = {
    "run.json": {"task": "t", "tags": ["a"], "started_at": 1.0, "workloads": []},
    "failure.json": {"message": "why", "exit_code": 3, "ended_at": 1.0},
    "status.json": {
        "name": "n",
        "phase": "running",
        "elapsed_s": 1.5,
        "planned": 3,
        "settled": 1,
    },
    "summary.json": {
        "format": 1,
        **{name: [] for name in ("tags", "notes", "workloads")},
        **dict.fromkeys(("run_id", "task", "started_at", "finished_at", "exit_code"), 1),
    },
}


@quick
@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_documents_of_a_run_are_listed_or_refused(name, data):
    valid = json.dumps(DOCUMENTS[name]).encode()
    text = data.draw(damaged(valid) | changed(DOCUMENTS[name]).map(as_json))
    with folder() as here:
        for other in ("run.json", "status.json"):
            (here / other).write_bytes(json.dumps(DOCUMENTS[other]).encode())
        (here / name).write_bytes(text)
        run = RunDirectory(here)

        refuses(lambda: run_listing.run_row(run), OsbenchError)
        refuses(lambda: summary_of(run), OsbenchError)
        refuses(lambda: failure.reason(run), OsbenchError)
        refuses(lambda: failure.exit_code(run), OsbenchError)


TIMELINE = zstandard.compress(
    msgpack.packb({"format": 1, "workloads": [], "summary": DOCUMENTS["summary.json"]})
)


@quick
@given(damaged(TIMELINE) | st.binary())
def test_a_timeline_is_read_or_none(content):
    with folder() as here, bounded():
        (here / "timeline").write_bytes(content)

        read_timeline(RunDirectory(here))


COUNTERS = zstandard.compress(
    msgpack.packb(
        {
            "format": 1,
            "workloads": {
                0: {
                    "step_s": 1.0,
                    "elapsed_s": 2.0,
                    "series": [["CPU", "db1", "share", "share", b"\0\0\x80\x3f" * 3]],
                }
            },
        }
    )
)


@quick
@given(damaged(COUNTERS) | st.binary())
def test_counters_are_read_or_none(content):
    with folder() as here, bounded():
        (here / "counters").write_bytes(content)

        for one in read_counters(RunDirectory(here)).values():
            figures_of(one)


KEYS = b"A" * 43 + b"=\n" + b"B" * 43 + b"=\n"


@quick
@given(damaged(KEYS))
def test_a_key_file_is_read_or_refused(content):
    with folder() as here:
        path = here / "keys"
        path.write_bytes(content)
        path.chmod(0o600)

        refuses(lambda: Keyring.load(path), ConfigError)


TASK = """
version: 2
title: a
subtasks:
  - title: b
    workloads:
      - scenario: {Dummy.dummy: {sleep: &s 0.1, text: "{{ 'x' * 3 }}"}}
        runner: {constant: {times: 3, concurrency: 1, timeout: *s}}
        <<: {args_from: rows.csv}
"""


@quick
@given(damaged(TASK.encode()))
def test_a_task_file_is_read_or_refused(content):
    with folder() as here, bounded():
        path = here / "task.yaml"
        path.write_bytes(content)

        def load() -> None:
            value = read_document(str(path), {})
            # what has been read can be sent
            msgpack.packb(value)
            json.dumps(value, allow_nan=False).encode()
            parse(value, "task")

        refuses(load, TaskError)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(LAUGHS, "aliases", id="aliases of aliases"),
        pytest.param("a: &a {b: *a}", "alias of itself", id="an alias of itself"),
        pytest.param("[" * 400 + "]" * 400, "deep", id="deep"),
        pytest.param("[" * 1_500 + "]" * 1_500, "deep", id="very deep"),
        pytest.param(
            "".join(f"a{n}: &a{n} [{f'*a{n - 1}' if n else ''}]\n" for n in range(500)),
            "deep",
            id="deep by aliases",
        ),
        pytest.param("a: " + "9" * 40, "64 bits", id="a large number"),
        pytest.param("a: " + "9" * 9000, "", id="a very large number"),
        pytest.param("a: " + ":".join(["59"] * 3000), "", id="a number to the base of 60"),
        pytest.param('a: "\\ud800"', "UTF-8", id="half of a character"),
    ],
)
def test_a_document_beyond_a_bound_is_one_problem(text, problem):
    with bounded(64 << 20):
        value, problems = document.parse_document(text)

    assert value is None or problems
    assert any(problem in str(one) for one in problems), problems


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'x' * 10 ** 9 }}",
        "{{ 10 ** 10 ** 8 }}",
        "{{ [0] * 10 ** 9 }}",
        "{{ 2 ** (2 ** 40) }}",
        "{{ range(10 ** 9) | list }}",
    ],
)
def test_a_template_that_would_fill_the_memory_is_one_problem(text, tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text(f"a: {text}\n", "utf-8")

    with bounded(64 << 20), pytest.raises(TaskError):
        read_document(str(path), {})


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@quick
@given(st.data())
def test_a_deployment_file_is_read_or_refused(suffix, data):
    record = {
        "openstack": {
            "auth_url": "http://a/v3",
            "admin": {"username": "a", "password": "b", "project_name": "c"},
            "users": [],
            "api_info": {"nova": {"version": 2}},
        }
    }
    valid = json.dumps(record).encode()
    content = data.draw(damaged(valid) | changed(record).map(as_json))
    with folder() as here:
        path = here / f"cloud.{suffix}"
        path.write_bytes(content)

        def use() -> None:
            found = Deployment.from_file("a", path)
            found.masked()
            json.dumps(found.to_dict())

        refuses(use, DeploymentError)


@pytest.mark.parametrize(
    "text",
    [
        *(LAUGHS, "a: &a [*a]", "a: 2020-99-99", "[" * 900, "a: " + "9" * 9000, "a: *b", "\x00"),
        *("a: !!bool no-bool", "a: !!timestamp soon", 'a: !!int ""', 'a: !!float ""'),
    ],
)
def test_yaml_is_read_or_refused_with_one_kind_of_error(text, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(text, "utf-8")

    with bounded(64 << 20), pytest.raises(DeploymentError):
        Deployment.from_file("a", path)


def test_a_value_of_another_tag_is_named_with_its_place():
    with pytest.raises(YAMLError, match=r"not match its tag !!bool; .*\n.*line 2, column 4"):
        load_yaml("a: 1\nb: !!bool soon")
    (problem,) = document.parse_document("a: 1\nb: !!bool soon")[1]
    assert str(problem) == (
        "line 2, column 4: a value does not match its tag !!bool; correct it, or put it in quotes"
    )


def test_ordinary_aliases_are_read():
    assert load_yaml("a: &a [1]\nb: [*a, *a]\nc: {<<: {d: 1}}") == {
        "a": [1],
        "b": [[1], [1]],
        "c": {"d": 1},
    }


EVENT: dict[str, Any] = {
    "name": "wsgi-start",
    "service": "keystone",
    "trace_id": "8f7c2a5e-0000-4000-8000-000000000002",
    "parent_id": "8f7c2a5e-0000-4000-8000-000000000001",
    "base_id": "8f7c2a5e-0000-4000-8000-000000000001",
    "timestamp": "2026-01-01T00:00:00.000001",
    "project": "keystone",
    "info": {"host": "h", "request": {"path": "/v3", "method": "GET"}, "db": {"statement": "x"}},
}
STOP = {**EVENT, "name": "wsgi-stop", "timestamp": "2026-01-01T00:00:00.000009"}


@settings(max_examples=examples(150))
@given(changed(EVENT), changed(STOP))
def test_trace_events_are_paired_or_skipped(start, stop):
    events = []
    for written in (start, stop, EVENT):
        with contextlib.suppress(ValueError):
            events.append(event_of(json.loads(as_json(written))))
    with bounded():
        for trace in pair(events, everything=True).values():
            msgpack.packb(trace.spans)
            json.dumps(trace.spans).encode()


OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "a"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "0" * 31 + "1",
                            "spanId": "0" * 15 + "1",
                            "name": "n",
                            "startTimeUnixNano": "5",
                            "endTimeUnixNano": "9",
                            "kind": 2,
                            "status": {"code": 2},
                            "attributes": [{"key": "a", "value": {"intValue": "7"}}],
                        }
                    ]
                }
            ],
        }
    ]
}
REPORT = {"children": [{"children": [], "info": {"meta.raw_payload.wsgi-start": EVENT}}]}
POINT = (
    "2026-01-01 00:00:00.000001 0.5 8f7c2a5e-0000-4000-8000-000000000001"
    " 8f7c2a5e-0000-4000-8000-000000000001 8f7c2a5e-0000-4000-8000-000000000002 a-stop {}\n"
)


@settings(max_examples=examples(150))
@given(
    st.one_of(
        *(damaged(json.dumps(one).encode()) | changed(one).map(as_json) for one in (OTLP, REPORT)),
        damaged(POINT.encode()),
    )
)
def test_a_file_of_traces_is_read_or_refused(content):
    with folder() as here, bounded():
        path = here / "traces.json"
        path.write_bytes(content)

        def use() -> None:
            for trace in open_file(path, everything=True).all():
                msgpack.packb(trace.spans)

        refuses(use, UsageError)


def archived() -> tuple[bytes, bytes]:
    span = Span("a", "", "n", "s", "h", 5, 4, "d", "", "", 0, {})
    with folder() as here:
        archive = Archive(here)
        archive.keep(Trace(trace_id="t", spans=(span,), duplicates=0, origins={}))
        archive.release()
        kept = (here / "traces" / "kept").read_bytes()
    return kept, zstandard.compress(msgpack.packb([["t", 0, [list(span)], {}]]))


KEPT, RECORD = archived()


@quick
@given(
    damaged(KEPT)
    | changed([["t", 0, [["a"] * 12], {"x": ["y"] * 4}]]).map(
        lambda one: (
            struct.pack("<I", len(zstandard.compress(msgpack.packb(one))))
            + zstandard.compress(msgpack.packb(one))
        )
    )
)
def test_kept_traces_are_read_up_to_the_first_that_is_damaged(content):
    with folder() as here, bounded():
        (here / "traces").mkdir()
        (here / "traces" / "kept").write_bytes(content)
        archive = Archive(here)

        list(archive.traces())
        list(archive.some(["t"]))
        (here / "traces" / "features").write_bytes(content)
        refuses(archive.features, OsbenchError)


MATRIX = LatencyMatrix(8)
MATRIX.add(np.array([1, 2]), np.array([5, 10**9]))


@quick
@given(changed(MATRIX.to_dict()))
def test_a_matrix_of_others_is_read_or_refused(form):
    with bounded(64 << 20):
        refuses(lambda: LatencyMatrix.from_dict(form), KeyError, TypeError, ValueError, IndexError)


@pytest.mark.parametrize("shape", [[2**40, 1], [1, 2**40], [-1, 1], [2, 2, 2]])
def test_a_matrix_that_announces_much_is_refused(shape):
    with bounded(1 << 20), pytest.raises(ValueError, match=r".+"):
        LatencyMatrix.from_dict({**MATRIX.to_dict(), "bins": 2**40, "shape": shape})
