"""Key files: made, read back, rotated, and refused when they are not safe."""

import stat

import pytest

from osbench.common.errors import ConfigError
from osbench.common.protocol.keyring import Keyring


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "made" / "keys"
    Keyring.generate().save(path)
    return path


def test_a_saved_keyring_reads_back_the_same(key_file):
    first = Keyring.load(key_file)
    second = Keyring.load(key_file)

    assert first.keys == second.keys
    assert len(first.keys) == 1


def test_only_the_owner_may_read_a_key_file_and_enter_its_directory(key_file):
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    assert [path.name for path in key_file.parent.iterdir()] == ["keys"]


def test_saving_narrows_the_mode_of_a_file_that_was_there(key_file):
    key_file.chmod(0o644)

    Keyring.generate().save(key_file)

    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o700])
def test_a_key_file_open_to_others_is_refused(key_file, mode):
    key_file.chmod(mode)

    with pytest.raises(ConfigError, match=rf"{key_file} has mode {mode:04o}.*chmod 600"):
        Keyring.load(key_file)


def test_a_read_only_key_file_is_accepted(key_file):
    key_file.chmod(0o400)

    assert Keyring.load(key_file)


def test_a_missing_key_file_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(ConfigError, match="osbench-coord keys new"):
        Keyring.load(tmp_path / "keys")


@pytest.mark.parametrize("content", ["short", "A" * 44, "!" * 43 + "=", "ä" * 43, "A" * 43 + "=="])
def test_a_malformed_line_is_refused_and_not_shown(key_file, content):
    with key_file.open("a", encoding="utf-8") as file:
        file.write(content + "\n")

    with pytest.raises(ConfigError) as refusal:
        Keyring.load(key_file)

    assert str(key_file) in str(refusal.value)
    assert content not in str(refusal.value)


def test_an_empty_key_file_is_refused(key_file):
    key_file.write_text("\n")

    with pytest.raises(ConfigError, match="holds no key"):
        Keyring.load(key_file)


def test_rotation_puts_a_new_key_first_and_keeps_two_old_ones():
    first = Keyring.generate()

    second = first.rotated()
    fourth = second.rotated().rotated()

    assert second.keys[0] not in first.keys
    assert second.keys[1:] == first.keys
    assert len(fourth.keys) == 3
    assert first.keys[0] not in fourth.keys


def test_signing_and_encryption_do_not_share_a_key():
    key = Keyring.generate().keys[0]

    assert len({key.signing, key.encryption}) == 2


def test_no_secret_shows_in_a_repr():
    ring = Keyring.generate()

    shown = repr(ring) + repr(ring.keys)

    assert repr(ring.keys[0].signing) not in shown
    assert repr(ring.keys[0].encryption) not in shown
