"""The key of a run in its journal, and a resumed run that does not have it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from osbench.common.errors import ConfigError
from osbench.common.protocol.keyring import ADOPT_S, Keyring
from osbench.coordinator.load.run.resumption.key_notes import KeyNotes, check_key
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    made = RunDirectory.create(str(tmp_path), "run")
    yield made
    made.close()


def test_a_key_is_noted_once(directory: RunDirectory) -> None:
    ring = Keyring.generate()
    notes = KeyNotes(ring, directory)  # type: ignore[arg-type]

    notes.look()
    notes.look()

    assert [record["key"] for record in directory.decisions()] == [ring.keys[0].id.hex()]


def test_a_run_whose_keys_were_replaced_is_refused(directory: RunDirectory, tmp_path: Path) -> None:
    ring, other = Keyring.generate(), Keyring.generate()
    KeyNotes(ring, directory).look()  # type: ignore[arg-type]

    check_key(directory, ring, tmp_path / "keys")
    with pytest.raises(ConfigError) as refused:
        check_key(directory, other, tmp_path / "keys")

    said = str(refused.value)
    assert f"signed with key {ring.keys[0].id.hex()}, and key file {tmp_path / 'keys'}" in said
    assert f"has {other.keys[0].id.hex()}; put the key file of the run back" in said


def test_rotated_keys_are_those_of_the_run_as_long_as_the_last_one_is_kept(
    directory: RunDirectory, tmp_path: Path
) -> None:
    path = tmp_path / "keys"
    Keyring.generate().save(path)
    ring = Keyring.load(path)
    notes = KeyNotes(ring, directory)  # type: ignore[arg-type]
    notes.look()
    first = ring.keys[0].id.hex()

    for _ in range(3):
        Keyring.load(path).rotated().save(path)
        then = time.time() - ADOPT_S - 1
        os.utime(path, (then, then))
        ring.changed(ring.keys)
        notes = KeyNotes(Keyring.load(path), directory)  # type: ignore[arg-type]
        notes.look()

    assert first not in [key.id.hex() for key in Keyring.load(path).keys]
    check_key(directory, Keyring.load(path), path)
    Keyring.load(path).rotated().save(path)
    check_key(directory, Keyring.load(path), path)


def test_a_run_of_an_older_release_is_not_refused(directory: RunDirectory, tmp_path: Path) -> None:
    directory.decide([{"do": "open", "epoch": 1}])

    check_key(directory, Keyring.generate(), tmp_path / "keys")
