"""A changed run of an archive, signed anew: it is read, or left out by its name."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.hostile import ODD
from helpers.made_runs import made_run
from osbench.common.errors import OsbenchError
from osbench.edges.history.archives.archive_record import ArchiveRecord
from osbench.edges.history.archives.run_archive import RunArchive
from osbench.edges.history.comparison import compared_run
from osbench.edges.history.comparison.compared_run import finished_runs
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_page import compare_page, trends_page
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.history.comparison.trends import trend_of

RUNS = ("20260401-101500-abcd", "20260402-101500-abcd", "20260403-101500-abcd")
#: The run in which values are changed.
CHANGED = RUNS[1]
quick = settings(max_examples=examples(60))
#: Whether a value of the summary or of the manifest is changed, and which.
PLACES = st.tuples(st.booleans(), st.integers(0, 10_000))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ArchiveRecord]:
    """The records of three runs, by their ids."""
    place = tmp_path_factory.mktemp("place")
    archive = RunArchive(str(place / "team"), str(place), pytest.fail)  # type: ignore[arg-type]
    for name in RUNS:
        archive.push(made_run(place, 300, run=name))
    return {one.run_id: one.record for one in archive.runs()}


def signed(record: ArchiveRecord, *, manifest: str = "", summary: str = "") -> ArchiveRecord:
    """The record with another run.json or summary.json, and the digests of these."""
    texts = {
        "run.json": manifest or record.manifest_text,
        "summary.json": summary or str(record.summary_text),
    }
    entries = {
        name: {"bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in texts.items()
    }
    return replace(
        record,
        files={**record.files, **entries},
        manifest_text=texts["run.json"],
        summary_text=texts["summary.json"],
    )


def read(records: dict[str, ArchiveRecord], other: ArchiveRecord) -> tuple[set[str], list[str]]:
    """Ids of runs that lists and comparisons have, and warnings, if CHANGED has another record."""
    with TemporaryDirectory() as name:
        warned: list[str] = []
        for record in ({**records, CHANGED: other}).values():
            path = Path(name) / "team" / record.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(record.encoded())
        archive = RunArchive(str(Path(name) / "team"), name, warned.append)
        runs = archive.runs()
        assert {one.run_id for one in runs} >= {RUNS[0], RUNS[2]}
        listed = {one.record.row()["run"] for one in runs}
        compared = list(
            finished_runs(
                name,
                left_out=warned.append,
                unsound=lambda one: warned.append(one.run_id),
                archived=runs,
            )
        )
    assert trends_page([trend_of(compared)])
    assert {RUNS[0], RUNS[2]} <= {one.run_id for one in compared}
    for before, after in itertools.pairwise(compared):
        with contextlib.suppress(OsbenchError):
            found = compare_sides(Evidence(before=[before], after=[after]), anyway=True)
            assert compare_page(found)
    return listed & {one.run_id for one in compared}, warned


@pytest.fixture(autouse=True)
def _sound(monkeypatch: pytest.MonkeyPatch) -> None:
    # runs of the helper have failed
    monkeypatch.setattr(compared_run, "_SOUND", range(256))


def places(document: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a JSON document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in items:
        found.append((*above, key))
        if isinstance(value, dict | list):
            found += places(value, (*above, key))
    return found


def with_text(document: Any, path: tuple[Any, ...], text: str) -> str:
    """The document as JSON, with `text` as it is in the place of a value."""
    copy = inner = json.loads(json.dumps(document))
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "the value"
    return json.dumps(copy).replace('"the value"', text)


def with_value(record: ArchiveRecord, place: tuple[bool, int], text: str) -> ArchiveRecord:
    """The record with `text` in a place of its summary, or of its manifest."""
    in_summary, at = place
    document = record.summary if in_summary else record.manifest
    paths = places(document)
    changed = with_text(document, paths[at % len(paths)], text)
    return signed(record, **{"summary" if in_summary else "manifest": changed})


@quick
@given(place=PLACES, digits=st.sampled_from(["1" + "0" * 400, "-" + "9" * 310, "1e999", "NaN"]))
def test_a_run_with_a_number_beyond_floats_is_left_out_by_name(
    records: dict[str, ArchiveRecord], place: tuple[bool, int], digits: str
) -> None:
    other = with_value(records[CHANGED], place, digits)

    found, warned = read(records, other)

    assert found == {RUNS[0], RUNS[2]}
    assert len(warned) == 1
    assert f"/team: {other.name}: " in warned[0]


@settings(max_examples=examples(200))
@given(place=PLACES, value=st.sampled_from([*ODD, 10**308, -1e308, 1e-320]))
def test_a_changed_run_is_read_or_left_out_by_name_and_the_others_stay(
    records: dict[str, ArchiveRecord], place: tuple[bool, int], value: Any
) -> None:
    other = with_value(records[CHANGED], place, json.dumps(value, default=str))

    found, warned = read(records, other)

    assert found >= {RUNS[0], RUNS[2]}
    assert CHANGED in found or any(CHANGED in one for one in warned)


@pytest.mark.parametrize("name", ["null", f'"{RUNS[0]}"'])
def test_a_summary_of_another_run_is_left_out_by_name(
    records: dict[str, ArchiveRecord], name: str
) -> None:
    record = records[CHANGED]

    found, warned = read(
        records, signed(record, summary=with_text(record.summary, ("run_id",), name))
    )

    assert found == {RUNS[0], RUNS[2]}
    assert f"summary.json of run {CHANGED} of " in "".join(warned)
