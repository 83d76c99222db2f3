"""What a user names is read within a bound, whatever it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from osbench.common.files import named_files
from osbench.common.files.named_files import read_named, read_text


def test_a_file_is_read_up_to_its_bound(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345\r\n678")

    assert read_named(file, 10) == b"12345\r\n678"
    assert read_text(str(file)) == "12345\n678"
    with pytest.raises(OSError, match="is larger than 9 bytes"):
        read_named(file, 9)


def test_a_device_without_an_end_is_read_up_to_the_bound():
    with pytest.raises(OSError, match="is larger than 16 MiB"):
        read_named("/dev/zero")
    assert read_named("/dev/null") == b""


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb") as file:
            for _ in range(100):
                file.write(b"x" * 1000)

    writer = threading.Thread(target=write)
    writer.start()

    assert read_named(pipe) == b"x" * 100_000
    writer.join()


@pytest.mark.parametrize("written", [b"", b"something"])
def test_a_pipe_into_which_nobody_writes_is_given_up(tmp_path, monkeypatch, written):
    monkeypatch.setattr(named_files, "PATIENCE_S", 0.01)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # a pipe that nobody closes
    writer = os.open(pipe, os.O_RDWR) if written else -1
    if written:
        os.write(writer, written)

    with pytest.raises(OSError, match="is a pipe that no process writes to"):
        read_named(pipe)

    if written:
        os.close(writer)


def test_a_process_substitution_of_a_shell_is_read():
    read, write = os.pipe()
    os.write(write, b"text")
    os.close(write)

    assert read_text(Path(f"/dev/fd/{read}")) == "text"
    os.close(read)


def test_a_directory_is_none_of_them(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_named(tmp_path)
