"""Key files: made, read back, rotated, and refused when they are not safe."""

import os
import stat
import time

import pytest

from osbench.common.errors import ConfigError, Untrusted
from osbench.common.protocol import keyring
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import ADOPT_S, FILE_BYTES, Keyring


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


def test_a_key_file_that_is_too_large_is_refused_and_not_cut(key_file):
    line = Keyring.generate().text
    key_file.write_text(line * (FILE_BYTES // len(line)))

    assert Keyring.load(key_file)

    key_file.write_text(line * (FILE_BYTES // len(line) + 1))
    with pytest.raises(ConfigError, match=rf"key file {key_file} has more than 65,536 bytes: "):
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


@pytest.fixture
def eager(monkeypatch):
    """A ring that looks at its file each time it is asked."""
    monkeypatch.setattr(keyring, "LOOK_S", 0.0)
    monkeypatch.setattr(keyring, "UNKNOWN_S", 0.0)


def grow_old(key_file, seconds=ADOPT_S + 1):
    then = time.time() - seconds
    os.utime(key_file, (then, then))


def test_a_key_that_is_not_known_is_looked_for_in_the_file_at_once(key_file):
    ring = Keyring.load(key_file)
    rotated = Keyring.load(key_file).rotated()
    rotated.save(key_file)
    newest = Keyring(rotated._secrets[:1])

    assert Signer(ring).verify("batch", Signer(newest).sign("batch", {"a": 1})) == {"a": 1}


def test_an_encrypted_record_of_a_key_that_is_not_known_is_looked_for_in_the_file(key_file):
    ring = Keyring.load(key_file)
    rotated = ring.rotated()
    rotated.save(key_file)
    newest = Keyring(rotated._secrets[:1])

    assert Vault(ring).decrypt(Vault(newest).encrypt({"a": 1})) == {"a": 1}


def test_a_new_key_signs_only_when_others_have_had_time_to_get_it(key_file, eager):
    ring = Keyring.load(key_file)
    old = ring.signing()
    ring.rotated().save(key_file)

    assert ring.signing() == old
    assert len(ring.keys) == 2
    # so does a process that starts now
    assert Keyring.load(key_file).signing() == old

    grow_old(key_file)
    assert ring.signing() == ring.keys[0] != old
    assert Keyring.load(key_file).signing() == ring.keys[0]


def test_the_only_key_of_a_file_signs_at_once(key_file, eager):
    ring = Keyring.load(key_file)
    Keyring.generate().save(key_file)

    assert ring.signing() == Keyring.load(key_file).keys[0]


def test_a_file_written_in_the_future_delays_no_key(key_file):
    Keyring.load(key_file).rotated().save(key_file)
    grow_old(key_file, -3600)

    ring = Keyring.load(key_file)

    assert ring.signing() == ring.keys[0]


@pytest.mark.parametrize("content", [b"", b"half a li", b"\xff" * 100, None])
def test_keys_stay_in_use_while_the_file_is_not_whole(key_file, eager, content, caplog):
    ring = Keyring.load(key_file)
    before = ring.keys
    whole = Keyring.load(key_file).rotated()

    if content is None:
        key_file.unlink()
    else:
        key_file.write_bytes(content)
    assert ring.signing() == before[0]
    assert ring.find(b"none") is None

    whole.save(key_file)
    assert ring.find(whole.keys[0].id) == whole.keys[0]
    assert b"half" not in caplog.text.encode()


def test_a_file_that_others_may_read_is_not_taken(key_file, eager):
    ring = Keyring.load(key_file)
    rotated = ring.rotated()
    rotated.save(key_file)
    key_file.chmod(0o644)

    assert ring.find(rotated.keys[0].id) is None


def test_unknown_keys_do_not_have_the_file_looked_at_again_and_again(key_file, monkeypatch):
    ring = Keyring.load(key_file)
    looks = []
    monkeypatch.setattr(keyring, "UNKNOWN_S", 3600.0)
    monkeypatch.setattr(keyring, "LOOK_S", 3600.0)
    monkeypatch.setattr(keyring, "_identity", looks.append)
    monkeypatch.setattr(keyring, "_read_secrets", lambda path: ([bytes(32)], ring._place))

    for _ in range(50):
        with pytest.raises(Untrusted):
            Signer(ring).verify("batch", Signer(Keyring.generate()).sign("batch", {}))

    assert len(looks) == 1


def test_keys_that_were_removed_are_no_longer_accepted(key_file, eager):
    ring = Keyring.load(key_file)
    signed = Signer(ring).sign("batch", {})
    Keyring.generate().save(key_file)

    with pytest.raises(Untrusted, match="unknown key"):
        Signer(ring).verify("batch", signed)


def test_a_text_without_a_key_is_refused():
    with pytest.raises(ConfigError, match="no key"):
        Keyring.of("")
