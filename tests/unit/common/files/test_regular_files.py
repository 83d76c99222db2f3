"""Files with secrets are whole, private, and leave no drafts."""

import os
import stat

import pytest

from osbench.common.files.regular_files import TooOpen, read_private, write_private
from osbench.common.ports import disk


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_and_its_directories_are_private_whatever_the_umask(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    before = os.umask(0)
    try:
        write_private(path, b"secret")
    finally:
        os.umask(before)

    assert read_private(path) == b"secret"
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)


def test_directories_that_were_there_keep_their_mode(tmp_path):
    tmp_path.chmod(0o755)

    write_private(tmp_path / "file", b"x")

    assert mode(tmp_path) == 0o755


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    write_private(path, b"long content")
    link = tmp_path / "link"
    link.hardlink_to(path)

    write_private(path, b"short")

    assert path.read_bytes() == b"short"
    assert link.read_bytes() == b"long content"


def test_a_failed_write_leaves_no_draft(tmp_path):
    (tmp_path / "file").mkdir()

    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "file", b"x")

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_open_to_others_is_not_read(tmp_path):
    path = tmp_path / "file"
    write_private(path, b"x")
    path.chmod(0o640)

    with pytest.raises(TooOpen, match="has mode 0640"):
        read_private(path)


def test_a_file_that_need_not_be_on_disk_is_not_waited_for(tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(disk, "fsync", waited.append)

    write_private(tmp_path / "file", b"x", synced=False)
    assert (tmp_path / "file").read_bytes() == b"x"
    assert waited == []

    write_private(tmp_path / "file", b"y")
    # the file and its directory
    assert len(waited) == 2
