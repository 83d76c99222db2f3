"""A run as one file, and packed runs that are none."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from osbench.common.errors import RefusedRun
from osbench.coordinator.storage.digests import Entry, entry_of
from osbench.edges.history.archives.packed_run import is_bomb, pack, unpack

RUN = "20260401-101500-abcd"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run directory of some files."""
    found = tmp_path / "here" / RUN
    (found / "traces").mkdir(parents=True)
    (found / "run.json").write_bytes(b'{"run_id": 1}')
    (found / "blocks").write_bytes(bytes(range(256)) * 5000)
    (found / "status.json").write_bytes(b"")
    (found / "traces" / "kept").write_bytes(b"k" * 700)
    return found


def entries(folder: Path) -> dict[str, Entry]:
    paths = [one for one in folder.rglob("*") if one.is_file()]
    return {str(one.relative_to(folder)): entry_of(one) for one in paths}


def packed(folder: Path, files: dict[str, Entry] | None = None) -> bytes:
    target = io.BytesIO()
    pack(folder, entries(folder) if files is None else files, target)
    return target.getvalue()


def compressed(build: Callable[[tarfile.TarFile], None]) -> bytes:
    """A packed run as somebody else could make it."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        build(tar)
    return zstandard.ZstdCompressor().compress(plain.getvalue())


def add(tar: tarfile.TarFile, name: str, content: bytes, **fields: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in fields.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(content))


def files_below(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.rglob("*") if not one.is_dir()}


def test_a_run_comes_out_as_it_went_in(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "there" / RUN
    target.parent.mkdir()

    unpack(io.BytesIO(packed(folder)), target, entries(folder))

    assert entries(target) == entries(folder)
    assert {one.stat().st_mode & 0o777 for one in target.rglob("*")} == {0o600, 0o700}


def test_the_same_run_gives_the_same_bytes(folder: Path) -> None:
    first = packed(folder)
    for one in folder.rglob("*"):
        one.touch()
    (folder / "blocks").chmod(0o640)

    assert packed(folder) == first


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 5001, b"y" * 1_280_000])
def test_a_file_that_changes_while_it_is_packed_is_refused(folder: Path, content: bytes) -> None:
    files = entries(folder)
    (folder / "blocks").write_bytes(content)

    with pytest.raises(RefusedRun, match="blocks changed while it was packed"):
        packed(folder, files)


def test_a_cut_or_changed_packed_run_is_refused_or_gives_the_same_files(
    folder: Path, tmp_path: Path
) -> None:
    whole, files = packed(folder), entries(folder)
    refused = 0

    for at in range(0, len(whole), max(1, len(whole) // 40)):
        for broken in (whole[:at], whole[:at] + b"\xff\x00\xff" + whole[at + 3 :]):
            target = tmp_path / f"{at}-{len(broken)}" / RUN
            target.parent.mkdir()
            try:
                unpack(io.BytesIO(broken), target, files)
            except ValueError:
                refused += 1
            else:
                assert entries(target) == files

    # a checksum at the end, and blocks of zeros, are all that nobody misses
    assert refused > 70


HOSTILE: dict[str, Callable[[tarfile.TarFile], None]] = {
    "above": lambda tar: add(tar, f"{RUN}/../../evil", b"x"),
    "absolute": lambda tar: add(tar, "/tmp/osbench-evil", b"x"),
    "of another run": lambda tar: add(tar, "other/run.json", b'{"run_id": 1}'),
    "without folder": lambda tar: add(tar, "run.json", b'{"run_id": 1}'),
    "unknown": lambda tar: add(tar, f"{RUN}/plan", b"x"),
    "symbolic link": lambda tar: add(
        tar, f"{RUN}/run.json", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"
    ),
    "hard link": lambda tar: add(
        tar, f"{RUN}/run.json", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd"
    ),
    "device": lambda tar: add(tar, f"{RUN}/run.json", b"", type=tarfile.CHRTYPE),
    "directory": lambda tar: add(tar, f"{RUN}/run.json", b"", type=tarfile.DIRTYPE),
    "longer": lambda tar: add(tar, f"{RUN}/run.json", b'{"run_id": 1}' * 4000),
    "shorter": lambda tar: add(tar, f"{RUN}/run.json", b"{"),
    "other content": lambda tar: add(tar, f"{RUN}/run.json", b'{"run_id": 2}'),
    "a long name": lambda tar: add(tar, f"{RUN}/{'x' * 50_000_000}", b""),
    "nothing": lambda tar: None,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_nothing_but_the_files_of_the_record_is_written(
    folder: Path, tmp_path: Path, what: str
) -> None:
    wanted = {"run.json": entries(folder)["run.json"]}
    place = tmp_path / "there"
    place.mkdir()

    with pytest.raises(ValueError):
        unpack(io.BytesIO(compressed(HOSTILE[what])), place / RUN, wanted)

    assert files_below(place) <= {f"{RUN}/run.json"}
    assert not Path("/tmp/osbench-evil").exists()
    for path in files_below(place):
        assert (place / path).stat().st_size <= (1 << 20) + 13


def test_a_file_that_is_there_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    content = (folder / "run.json").read_bytes()

    def build(tar: tarfile.TarFile) -> None:
        add(tar, f"{RUN}/run.json", content)
        add(tar, f"{RUN}/run.json", content)

    with pytest.raises(ValueError, match="other files"):
        unpack(
            io.BytesIO(compressed(build)),
            tmp_path / RUN,
            {"run.json": entries(folder)["run.json"]},
        )


def test_a_bomb_is_known_by_its_sizes() -> None:
    entry: Entry = {"bytes": 500 << 30, "sha256": "0" * 64}

    assert is_bomb({"blocks": entry}, 1 << 20)
    assert not is_bomb({"blocks": {**entry, "bytes": 60 << 20}}, 100)
    assert not is_bomb({"blocks": entry}, 400 << 30)
