"""Keys of certificates: private, never replaced, and readable by other tools."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from osbench.common.errors import ConfigError, UsageError
from osbench.edges.certificate.signing_key import PublicKey, SealingKey, new_key, public_path


def given(text: str) -> Callable[[], str]:
    """A passphrase that the user gives."""
    return lambda: text


def never() -> str:
    """A passphrase that nobody asks for."""
    raise AssertionError("a passphrase was asked for")


@pytest.mark.parametrize("passphrase", ["", "correct horse"])
def test_a_new_key_signs_and_its_public_key_verifies(tmp_path: Path, passphrase: str) -> None:
    path = tmp_path / "team.key"

    public = new_key(path, passphrase)

    key = SealingKey.load(path, given(passphrase) if passphrase else never)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    known = PublicKey.load(public_path(path))
    assert known == public == key.public
    assert known.is_signed(b"message", key.sign(b"message"))
    assert not known.is_signed(b"massage", key.sign(b"message"))
    assert not known.is_signed(b"message", b"short")
    assert ("ENCRYPTED" in path.read_text("ascii")) == bool(passphrase)
    assert "PRIVATE" not in repr(key) + str(key)


def test_keys_are_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "team.key"
    new_key(path, "")
    before = path.read_bytes()

    with pytest.raises(UsageError, match=r"team.key.pub exists"):
        new_key(path, "")
    public_path(path).unlink()
    with pytest.raises(UsageError, match=r"team.key exists"):
        new_key(path, "")

    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused_with_the_chmod(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "team.key"
    new_key(path, "x")
    path.chmod(mode)

    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        SealingKey.load(path, never)


def test_a_wrong_or_missing_passphrase_is_named(tmp_path: Path) -> None:
    path = tmp_path / "team.key"
    new_key(path, "right")

    with pytest.raises(UsageError, match="the passphrase is wrong"):
        SealingKey.load(path, given("wrong"))
    with pytest.raises(UsageError, match="none was given"):
        SealingKey.load(path, given(""))


def test_other_files_are_refused_as_keys(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    cases = {b"": "not a secret key", b"\xff\x00": "not a secret key", pem: "is not of Ed25519"}
    path = tmp_path / "x.key"
    for content, reason in cases.items():
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(UsageError, match=reason):
            SealingKey.load(path, never)
        with pytest.raises(UsageError, match="is not a public key of Ed25519"):
            PublicKey.load(path)
    with pytest.raises(UsageError, match="certify --new-key"):
        SealingKey.load(tmp_path / "none.key", never)
    with pytest.raises(UsageError, match="cannot read the public key"):
        PublicKey.load(tmp_path)


def test_openssl_reads_the_keys_if_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "team.key"
    new_key(path, "")
    try:
        done = subprocess.run(
            ["openssl", "pkey", "-in", str(path), "-pubout"], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("needs the command openssl")

    assert done.stdout == public_path(path).read_bytes()
