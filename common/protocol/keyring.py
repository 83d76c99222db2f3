"""The keys that coordinator and workers share: a file of secrets, the first of them current."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from osbench.common.errors import ConfigError
from osbench.common.private_files import TooOpen, read_private, write_private

#: Bytes of a secret.
SECRET_SIZE = 32
#: Secrets that a rotation keeps, the new one included.
KEPT = 3

_LINE = re.compile(r"[A-Za-z0-9_-]{43}=?")


@dataclass(frozen=True, kw_only=True)
class Key:
    """Keys derived from one line of a key file (HKDF-SHA256, RFC 5869, one label per key)."""

    #: 4 bytes that identify the key in a message; they reveal nothing about the secret.
    id: bytes
    signing: bytes = field(repr=False)
    encryption: bytes = field(repr=False)

    @classmethod
    def derive(cls, secret: bytes) -> Self:
        """The keys of one secret."""
        return cls(
            id=_derived(secret, b"osbench key id 1", 4),
            signing=_derived(secret, b"osbench signing 1", 32),
            encryption=_derived(secret, b"osbench encryption 1", 32),
        )


def _derived(secret: bytes, label: bytes, size: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=size, salt=None, info=label).derive(secret)


class Keyring:
    """One current secret, and older secrets that are still accepted."""

    def __init__(self, secret_list: Sequence[bytes]) -> None:
        if not secret_list or any(len(secret) != SECRET_SIZE for secret in secret_list):
            raise ValueError(f"a keyring holds secrets of {SECRET_SIZE} bytes, at least one")
        self._secrets = tuple(secret_list)
        #: Derived keys; the first is current.
        self.keys = tuple(Key.derive(secret) for secret in self._secrets)

    def __repr__(self) -> str:
        return f"Keyring({', '.join(key.id.hex() for key in self.keys)})"

    @classmethod
    def generate(cls) -> Self:
        """A keyring with one new random secret."""
        return cls([secrets.token_bytes(SECRET_SIZE)])

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a key file: one secret per line, 32 bytes in URL-safe base64.

        Raises ConfigError where it is missing, malformed, or open to others than its owner.
        """
        path = Path(path)
        try:
            lines = read_private(path).decode("ascii").splitlines()
        except FileNotFoundError:
            raise ConfigError(
                f"key file {path} does not exist: run 'osbench-coord keys new' on the "
                f"coordinator's host and copy its key file to every worker"
            ) from None
        except OSError as error:
            raise ConfigError(f"key file {path}: {error.strerror}") from None
        except TooOpen as error:
            raise ConfigError(f"key file {path} {error}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"key file {path} was not written by 'keys new'") from None
        found = [_secret(path, number, line) for number, line in enumerate(lines, 1) if line]
        if not found:
            raise ConfigError(f"key file {path} holds no key: run 'osbench-coord keys new --force'")
        return cls(found)

    @classmethod
    def of(cls, text: str) -> Self:
        """The keyring that has this `text`. Raises ConfigError where it is malformed."""
        lines = text.splitlines()
        return cls([_secret("keys", number, line) for number, line in enumerate(lines, 1)])

    @property
    def text(self) -> str:
        """The content of a key file: the secrets."""
        lines = [base64.urlsafe_b64encode(secret).decode("ascii") for secret in self._secrets]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the key file atomically, mode 0600. Raises ConfigError where that fails."""
        try:
            write_private(Path(path), self.text.encode("ascii"))
        except OSError as error:
            raise ConfigError(f"key file {path}: {error.strerror}") from None

    def rotated(self) -> Keyring:
        """A keyring with a new current secret that still accepts the newest of the old ones."""
        return Keyring([secrets.token_bytes(SECRET_SIZE), *self._secrets][:KEPT])


def _secret(path: Path | str, number: int, line: str) -> bytes:
    if not _LINE.fullmatch(line):
        raise ConfigError(
            f"key file {path}: line {number} is not {SECRET_SIZE} bytes in URL-safe base64"
        )
    return base64.urlsafe_b64decode(line.rstrip("=") + "=")
