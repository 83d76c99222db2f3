"""Keys that sign certificates: Ed25519 (RFC 8032), in PEM files that other tools read as well."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from osbench.common.errors import ConfigError, UsageError
from osbench.common.files.regular_files import (
    TooOpen,
    read_private,
    read_regular,
    sync_directory,
)
from osbench.common.ports import disk
from osbench.coordinator.results.storage.frames import reason_of

#: Ends the name of the public key, which is written next to the secret one.
PUBLIC = ".pub"
#: Largest key file that is read, bytes; bytes of a public key and of a signature.
_MOST_BYTES = 64 << 10
PUBLIC_BYTES, SIGNATURE_BYTES = 32, 64


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """A public key, by which everybody can verify signatures."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """Return SHA256: and the digest of the key, which two people compare."""
        return f"SHA256:{hashlib.sha256(self.raw).hexdigest()}"

    @property
    def pem(self) -> bytes:
        """Return the key as a file in PEM, which `load` reads."""
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def is_signed(self, message: bytes, signature: bytes) -> bool:
        """Return whether the owner of the key has signed `message`."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a public key in PEM. Raises UsageError if the file is not that."""
        try:
            found = load_pem_public_key(read_regular(path, _MOST_BYTES))
        except OSError as error:
            raise UsageError(
                f"cannot read the public key {path}: {reason_of(error)}; give the file that"
                f" `certify --new-key` wrote, which ends in {PUBLIC}"
            ) from None
        except (ValueError, UnsupportedAlgorithm):
            found = None
        if not isinstance(found, Ed25519PublicKey):
            raise UsageError(
                f"{path} is not a public key of Ed25519 in PEM; give the file that"
                f" `certify --new-key` wrote, which ends in {PUBLIC}"
            )
        return cls(raw=found.public_bytes(Encoding.Raw, PublicFormat.Raw))


class SealingKey:
    """A secret key that signs certificates; its text and `repr` do not show it."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @property
    def public(self) -> PublicKey:
        """Return the public key that belongs to it."""
        return PublicKey(raw=self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of `message`, `SIGNATURE_BYTES` bytes."""
        return self._key.sign(message)

    def pem(self, passphrase: str) -> bytes:
        """Return the secret key in PEM, encrypted by `passphrase`, or in clear if that is ""."""
        protection = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)

    @classmethod
    def load(cls, path: Path, passphrase: Callable[[], str]) -> Self:
        """Read the secret key at `path`; `passphrase` is called if it is encrypted.

        Raises ConfigError if others can read the file, UsageError if it cannot be read or is
        another kind of key, or if the passphrase is missing or wrong.
        """
        try:
            pem = read_private(path, _MOST_BYTES)
        except FileNotFoundError:
            raise UsageError(
                f"there is no key {path}; make it with `osbench-coord certify --new-key {path}`"
            ) from None
        except OSError as error:
            raise UsageError(
                f"cannot read the key {path}: {reason_of(error)}; restore it, or make it readable"
            ) from None
        except TooOpen as error:
            raise ConfigError(
                f"the key {path} {error}: run `chmod 600 {path}`, and make a new key if others"
                " have read it"
            ) from None
        return cls(_private_key(path, pem, passphrase))


def _private_key(path: Path, pem: bytes, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    # PKCS 8 names it in its first line
    secret = passphrase().encode() if b"BEGIN ENCRYPTED" in pem else None
    if secret == b"":
        raise UsageError(f"the key {path} has a passphrase, and none was given")
    try:
        found = load_pem_private_key(pem, secret)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        reason = "it is" if secret is None else "the passphrase is wrong, or it is"
        raise UsageError(
            f"the key {path} cannot be read: {reason} not a secret key in PEM; make a key with"
            " `osbench-coord certify --new-key FILE`"
        ) from None
    if not isinstance(found, Ed25519PrivateKey):
        raise UsageError(
            f"the key {path} is not of Ed25519; make a key with `osbench-coord certify --new-key"
            " FILE`"
        )
    return found


def new_key(path: Path, passphrase: str) -> PublicKey:
    """Write a new secret key, mode 0600, and its public key next to it; return the public key.

    `passphrase` encrypts the secret key; "" leaves it in clear. Raises UsageError if a file
    exists or cannot be written; a key is never replaced.
    """
    key, beside = SealingKey(Ed25519PrivateKey.generate()), public_path(path)
    if os.path.lexists(beside):
        raise UsageError(f"{beside} exists; give another name, as keys are never replaced")
    _create(path, key.pem(passphrase), 0o600)
    _create(beside, key.public.pem, 0o644)
    return key.public


def public_path(path: Path) -> Path:
    """Return the path of the public key of the secret key at `path`."""
    return path.with_name(path.name + PUBLIC)


def _create(path: Path, content: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            disk.fsync(file.fileno())
        sync_directory(path.parent)
    except FileExistsError:
        raise UsageError(f"{path} exists; give another name, as keys are never replaced") from None
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {reason_of(error)}; give a path in a writable folder"
        ) from None
