"""Stores of archives: what each of them does alike."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.fake_cloud import fake_cloud
from osbench.common.errors import ArchiveError
from osbench.edges.history.archives.archive_store import ArchiveStore, store_of


@pytest.fixture(params=["folder", "file URL", "memory", "swift"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArchiveStore]:
    """An empty store."""
    if request.param != "swift":
        yield _without_server(request.param, tmp_path)
        return
    with fake_cloud() as cloud:
        cloud.absent.discard("object-store")
        (project,) = cloud.objects["projects"]
        cloud.containers[project] = {"team": {}}
        for name, value in cloud.variables().items():
            monkeypatch.setenv(name, value)
        yield store_of("swift://team/runs")


def _without_server(kind: str, tmp_path: Path) -> ArchiveStore:
    if kind == "folder":
        return store_of(str(tmp_path / "team" / "runs"))
    if kind == "file URL":
        return store_of((tmp_path / "with space").as_uri())
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install osbench[dev]")
    return store_of(f"memory://{uuid.uuid4().hex}/runs")


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A local file to be stored."""
    path = tmp_path / "local"
    path.write_bytes(b"a run" * 1000)
    return path


def test_an_empty_store_has_nothing(store: ArchiveStore, tmp_path: Path) -> None:
    assert store.listed("index") == {}
    assert store.size("index/one") is None
    assert store.read(["index/one"]) == {}
    assert not store.get("index/one", tmp_path / "got")
    assert store.is_missing()


def test_what_is_put_is_listed_read_and_got(
    store: ArchiveStore, local: Path, tmp_path: Path
) -> None:
    store.put(local, "runs/one.tar.zst")
    store.put(local, "index/one.json.zst")
    store.put(local, "index/two.json.zst")

    assert not store.is_missing()
    assert store.listed("index") == {"one.json.zst": 5000, "two.json.zst": 5000}
    assert store.listed("runs") == {"one.tar.zst": 5000}
    assert store.size("runs/one.tar.zst") == 5000
    assert store.get("runs/one.tar.zst", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == local.read_bytes()
    names = ["index/one.json.zst", "index/gone", "index/two.json.zst"]
    found = store.read(names)
    assert found == {name: local.read_bytes() for name in (names[0], names[2])}


def test_what_is_put_again_is_replaced(store: ArchiveStore, local: Path) -> None:
    store.put(local, "index/one")
    local.write_bytes(b"shorter")

    store.put(local, "index/one")

    assert store.read(["index/one"]) == {"index/one": b"shorter"}


def test_another_client_sees_what_is_new(store: ArchiveStore, local: Path) -> None:
    other = store_of(store.place)
    assert other.listed("index") == {}

    store.put(local, "index/one")

    assert list(other.listed("index")) == ["one"]


def test_a_local_file_that_is_missing_is_an_error(store: ArchiveStore, tmp_path: Path) -> None:
    with pytest.raises((ArchiveError, FileNotFoundError)):
        store.put(tmp_path / "gone", "index/one")

    assert store.listed("index") == {}
