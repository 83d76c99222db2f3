"""Places of archives: what is refused, and what errors of a place say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import ArchiveError, PluginError, UsageError
from osbench.common.plugin import entry_points
from osbench.edges.history.archives.archive_store import ArchiveStore, FolderStore, store_of


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "an archive is a folder, or a URL"),
        ("://bucket", "an archive is a folder, or a URL"),
        ("http://host/runs", "osbench only reads over HTTP"),
        ("https://host/runs", "AWS_ENDPOINT_URL"),
        ("file://host/runs", "three slashes"),
        ("s3://", "name a place, as in s3://BUCKET/FOLDER"),
        ("s3://key:hunter2@bucket/runs", "a URL with a password is seen by others"),
        ("sftp://me:hunter2@host/runs", "fsspec's configuration"),
        ("sftp://me@host:0/runs", "its address has a port that is not a number"),
        ("sftp://me@a@host/runs", "its address has an @"),
    ],
)
def test_urls_that_are_no_archive_are_refused(url: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        store_of(url)

    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_without_the_edge_that_has_swift_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        entry_points, "installed_points", lambda kinds: {kind: [] for kind in kinds}
    )

    with pytest.raises(PluginError, match=r"'swift' of the group osbench\.archive_store"):
        store_of("swift://team/shop")


def test_without_fsspec_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)

    with pytest.raises(UsageError, match=r"needs fsspec: pip install 'osbench\[archive\]'"):
        store_of("s3://bucket/runs")


def test_without_the_package_of_a_store_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

    def missing(*_: Any, **__: Any) -> None:
        raise ImportError("Install paramiko to access SFTP")

    monkeypatch.setattr(fsspec, "url_to_fs", missing)

    with pytest.raises(UsageError, match=r"s3:// needs s3fs: pip install 'osbench\[archive\]'"):
        store_of("s3://bucket/runs")
    with pytest.raises(UsageError, match="Install paramiko"):
        store_of("sftp://host/runs")


def test_an_unknown_scheme_is_refused() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")

    with pytest.raises(UsageError, match=r"the archive s4://bucket/runs: .*s4"):
        store_of("s4://bucket/runs")


class Buckets:
    """A file system of buckets, as s3fs is one: a missing bucket and a missing folder are alike."""

    def __init__(self, *buckets: str, denied: bool = False) -> None:
        self._buckets = buckets
        self._denied = denied

    def invalidate_cache(self) -> None:
        """Nothing is kept."""

    def ls(self, path: str, **_: Any) -> list[dict[str, Any]]:
        """Return nothing for a bucket."""
        if self._denied and "/" not in path:
            raise PermissionError("Access Denied")
        if path not in self._buckets:
            raise FileNotFoundError(path)
        return []

    def cat(self, paths: list[str], **_: Any) -> dict[str, Any]:
        """Find none of the objects."""
        raise FileNotFoundError(paths)


def store_in(monkeypatch: pytest.MonkeyPatch, files: Buckets) -> ArchiveStore:
    """Return the store of a folder in the bucket `team`."""
    fsspec = pytest.importorskip("fsspec", reason="no fsspec")
    monkeypatch.setattr(fsspec, "url_to_fs", lambda _: (files, "team/runs"))
    return store_of("s3://team/runs")


@pytest.mark.parametrize("files", [Buckets("team"), Buckets("other", denied=True)])
def test_an_archive_that_is_not_there_yet_is_empty(
    monkeypatch: pytest.MonkeyPatch, files: Buckets
) -> None:
    store = store_in(monkeypatch, files)

    assert store.listed("index") == {}
    assert store.read(["index/one"]) == {}


def test_a_misspelt_bucket_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(monkeypatch, Buckets("taem"))

    with pytest.raises(ArchiveError, match="s3://team/runs: there is no bucket team: check"):
        store.listed("index")


def test_errors_of_a_file_system_of_others_are_one_message_without_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory = pytest.importorskip("fsspec.implementations.memory", reason="no fsspec")
    store = store_of("memory://bucket/runs")
    local = tmp_path / "local"
    local.write_bytes(b"x")

    def cut(*_: Any, **__: Any) -> None:
        raise RuntimeError("connection reset by https://me:hunter2@host/?X-Amz-Signature=abcdef01")

    for name in ("ls", "info", "cat", "get_file", "put_file"):
        monkeypatch.setattr(memory.MemoryFileSystem, name, cut)

    for step in (
        lambda: store.listed("index"),
        lambda: store.size("index/one"),
        lambda: store.read(["index/one"]),
        lambda: store.get("index/one", local),
        lambda: store.put(local, "index/one"),
    ):
        with pytest.raises(ArchiveError) as failed:
            step()
        text = str(failed.value)
        assert text.startswith("the archive memory://bucket/runs: cannot ")
        assert "RuntimeError: connection reset" in text
        assert "hunter2" not in text
        assert "abcdef01" not in text


def test_a_folder_that_is_a_file_is_one_message(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")

    with pytest.raises(ArchiveError, match="cannot list index: not a directory"):
        FolderStore(place).listed("index")
    with pytest.raises(ArchiveError, match="cannot write index/one: "):
        FolderStore(place).put(place, "index/one")
    # where no folder can be made there is "no such file"
    with pytest.raises(ArchiveError, match="cannot write index/one: "):
        FolderStore(Path("/proc/none")).put(place, "index/one")


def test_a_failed_write_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    local = tmp_path / "local"
    local.write_bytes(b"x")
    monkeypatch.setattr("osbench.edges.history.archives.archive_store.disk.fsync", full)
    store = FolderStore(tmp_path / "team")

    with pytest.raises(ArchiveError, match="cannot write index/one: no space left on device"):
        store.put(local, "index/one")

    assert list((tmp_path / "team" / "index").iterdir()) == []


def test_pipes_and_links_to_nowhere_are_not_waited_for(tmp_path: Path) -> None:
    import os

    (tmp_path / "index").mkdir()
    os.mkfifo(tmp_path / "index" / "pipe")
    store = FolderStore(tmp_path)

    with pytest.raises(ArchiveError, match="cannot read index/pipe"):
        store.read(["index/pipe"])
