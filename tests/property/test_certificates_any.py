"""Certificates of any content: one canonical form, and signed nonsense ends in a message."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zstandard
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from helpers.certified_runs import RUN, certified_run, new_digests, signing_key, statement_of
from osbench.common.errors import OsbenchError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.frames import FrameFile, read_frames
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.certificate.canonical_json import canonical, parse_canonical
from osbench.edges.certificate.certificate_file import _PURPOSE
from osbench.edges.certificate.run_evidence import evidence_of
from osbench.edges.certificate.verify_command import verify_certificate

NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(VALUES)
def test_a_document_has_one_form_and_comes_back(document: Any) -> None:
    content = canonical(document)

    found = parse_canonical(content)

    assert json.dumps(found, sort_keys=True) == json.dumps(document, sort_keys=True)
    assert canonical(found) == content


@given(VALUES, st.integers(0, 10_000), st.sampled_from(b" \n\t"))
def test_a_document_in_another_form_is_refused(document: Any, place: int, blank: int) -> None:
    content = canonical(document)
    at = place % (len(content) + 1)
    changed = content[:at] + bytes([blank]) + content[at:]

    # in a text, it is another document
    with contextlib.suppress(ValueError):
        assert parse_canonical(changed) != document


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The statement of a certificate as JSON values."""
    return statement_of(certified_run(tmp_path_factory.mktemp("data"))).to_json()


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(place for key, one in inner for place in _places(one, (*path, key)))]


@given(st.data())
def test_signed_nonsense_is_refused_or_shown_and_never_a_traceback(
    document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    changed = copy.deepcopy(document)
    places = [one for one in _places(changed) if one]
    for place in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        holder, inner = changed, changed
        # an earlier change may have removed the place
        with contextlib.suppress(LookupError, TypeError):
            for key in place:
                holder, inner = inner, inner[key]
            holder[place[-1]] = data.draw(VALUES)
    signature = signing_key().sign(_PURPOSE + canonical(changed)).hex()
    path = tmp_path_factory.mktemp("x") / "certificate.json"
    path.write_bytes(canonical({"certificate": 1, "signature": signature, "statement": changed}))

    arguments = ["verify", str(path), "--html", str(path.with_suffix(".html"))]
    done = CliRunner().invoke(Group(commands=[verify_certificate]), arguments)

    assert done.exit_code in (0, 1), done.output
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "\x1b" not in done.output
    _no_other_file(path.parent)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a certified run, by name."""
    folder = certified_run(tmp_path_factory.mktemp("data")).path
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(st.data())
def test_a_run_of_any_content_gives_evidence_or_a_refusal(
    original: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("runs") / RUN
    folder.mkdir()
    for name, content in original.items():
        (folder / name).write_bytes(content)
    name = data.draw(st.sampled_from(["run.json", "summary.json", "journal", "blocks"]))
    if name in ("journal", "blocks"):
        _change_frames(folder / name, data)
    else:
        changed = json.loads(original[name])
        _change(changed, data)
        (folder / name).write_text(json.dumps(changed))

    try:
        found = evidence_of(new_digests(RunDirectory(folder)), Plugins())
    except OsbenchError as error:
        assert str(error)
    else:
        assert found.workloads


def _change(document: Any, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([one for one in _places(document) if one]))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = data.draw(VALUES)


def _change_frames(path: Path, data: st.DataObject) -> None:
    frames = list(read_frames(path))
    at = data.draw(st.integers(0, len(frames) - 1))
    packed = frames[at]
    if path.name == "blocks":
        packed = zstandard.ZstdDecompressor().decompress(packed, 1 << 20)
    records = list(msgpack.Unpacker(io.BytesIO(packed), raw=False, strict_map_key=False))
    _change(records, data)
    try:
        packed = b"".join(map(msgpack.packb, records))
    except OverflowError:
        # an integer that msgpack does not have
        return
    if path.name == "blocks":
        packed = zstandard.ZstdCompressor().compress(packed)
    path.unlink()
    file = FrameFile(path)
    file.append([*frames[:at], packed, *frames[at + 1 :]])
    file.close()


def _no_other_file(folder: Path) -> None:
    assert {one.suffix for one in folder.iterdir()} <= {".json", ".html"}
