"""The keys that coordinator and workers share: a file of secrets, the newest first.

Keys can be rotated while processes run: a loaded ring checks its file for changes at most every
second, and when a message names an unknown key. Files are copied from host to host, so a new key is
accepted as soon as it is there, and used for signing only `ADOPT_S` later.
"""

from __future__ import annotations

import base64
import errno
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from osbench.common.errors import ConfigError
from osbench.common.files.regular_files import TooOpen, read_private, write_private
from osbench.common.ports import chance as secrets
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading

LOG = logging.getLogger(__name__)

#: Bytes of a secret.
SECRET_SIZE = 32
#: Secrets that a rotation keeps, the new one included.
KEPT = 3

#: Age of a key file, seconds, from which its first key is used if there is an older one.
ADOPT_S = 60.0
#: Least time between two looks at the file, seconds, and between two for unknown keys.
LOOK_S = 1.0
UNKNOWN_S = 0.1
#: Largest key file that is read, bytes.
FILE_BYTES = 64 * 1024

_LINE = re.compile(r"[A-Za-z0-9_-]{43}=?")


@dataclass(frozen=True, kw_only=True)
class Key:
    """Keys derived from one secret, a line of a key file (HKDF-SHA256, RFC 5869, a label each)."""

    #: 4 bytes that identify the key in a message; they reveal nothing about the secret.
    id: bytes
    signing: bytes = field(repr=False)
    encryption: bytes = field(repr=False)

    @classmethod
    def derive(cls, secret: bytes) -> Self:
        """Derive id, signing key and encryption key from a secret of `SECRET_SIZE` bytes."""
        return cls(
            id=_derived_key(secret, b"osbench key id 1", 4),
            signing=_derived_key(secret, b"osbench signing 1", 32),
            encryption=_derived_key(secret, b"osbench encryption 1", 32),
        )


def _derived_key(secret: bytes, label: bytes, size: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=size, salt=None, info=label).derive(secret)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Path of a key file, and its state when it was read, by which a change is seen."""

    path: Path
    #: Changes when the file does: time of change in nanoseconds, size, inode.
    identity: tuple[int, int, int]

    @property
    def changed_at(self) -> float:
        """Return the modification time of the file, seconds since 1970."""
        return self.identity[0] / 1e9


class Keyring:
    """Secrets that coordinator and workers share: the current one, then older valid ones.

    Thread-safe. With a file, it follows the file's changes.
    """

    def __init__(self, secret_list: Sequence[bytes], place: _Place | None = None) -> None:
        if not secret_list or any(len(secret) != SECRET_SIZE for secret in secret_list):
            raise ValueError(f"a keyring must hold one or more secrets of {SECRET_SIZE} bytes")
        self._secrets = tuple(secret_list)
        #: Derived keys; the first is current.
        self.keys = tuple(Key.derive(secret) for secret in self._secrets)
        self._place = place
        self._looked = time.monotonic()
        #: When an unknown key was last looked for.
        self._asked = float("-inf")
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Keyring({', '.join(key.id.hex() for key in self.keys)})"

    @classmethod
    def generate(cls) -> Self:
        """Create a keyring of one random secret, without a file."""
        return cls([secrets.token_bytes(SECRET_SIZE)])

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the keyring of a file with secrets of 32 bytes, URL-safe base64, one per line.

        Raises ConfigError if it is missing, malformed, empty, or accessible to others than its
        owner.
        """
        return cls(*_read_secrets(Path(path)))

    def signing(self) -> Key:
        """Return the key to sign and encrypt with now: the first key of the ring.

        The second instead if the file changed less than ADOPT_S seconds ago. Checks the file at
        most every LOOK_S seconds, and reads it again if it has changed.
        """
        self._look_now_and_then()
        keys, place = self.keys, self._place
        if place is None or len(keys) == 1 or not 0 <= time.time() - place.changed_at < ADOPT_S:
            return keys[0]
        return keys[1]

    def find(self, key_id: bytes) -> Key | None:
        """Return the key whose 4-byte id is `key_id`; None if the ring has no such key.

        Reads the key file again if it has changed: checks at most every LOOK_S seconds, for an
        unknown id every UNKNOWN_S.
        """
        self._look_now_and_then()
        before = self.keys
        found = _with_id(before, key_id)
        if found is None and self.changed(before):
            found = _with_id(self.keys, key_id)
        return found

    def changed(self, before: tuple[Key, ...]) -> bool:
        """Return whether the ring's keys are another tuple than `before`.

        If not, first checks the key file, at most every UNKNOWN_S seconds, and reads it if it has
        changed. False without a file.
        """
        if self._place is not None:
            with self._lock:
                now = time.monotonic()
                if self.keys is before and now - self._asked >= UNKNOWN_S:
                    self._asked = now
                    self._look(self._place)
        return self.keys is not before

    def _look_now_and_then(self) -> None:
        place, now = self._place, time.monotonic()
        if place is not None and now - self._looked >= LOOK_S:
            with self._lock:
                self._looked = now
                self._look(place)

    def _look(self, place: _Place) -> None:
        """Read the key file if it has changed and replace the keys; logs that.

        A missing file is ignored; for a bad one a warning is logged. The known keys then stay.
        """
        try:
            identity = _identity(place.path.stat())
        except OSError:
            return
        if identity == place.identity:
            return
        try:
            found, self._place = _read_secrets(place.path)
        except ConfigError as error:
            # perhaps a copy that is not complete yet
            LOG.warning("%s; the keys read before stay in use", error)
            self._place = _Place(path=place.path, identity=identity)
            return
        self._secrets = tuple(found)
        self.keys = tuple(Key.derive(secret) for secret in found)
        LOG.info("key file %s has changed: it holds %d keys", place.path, len(found))

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the keyring of `text`, in the format of key files; it has no file.

        Raises ConfigError if a line is malformed or there is none.
        """
        lines = text.splitlines()
        if not lines:
            raise ConfigError("keys: no key")
        return cls([_secret("keys", number, line) for number, line in enumerate(lines, 1)])

    @property
    def text(self) -> str:
        """Return all secrets in the format of a key file, the current one first."""
        lines = [base64.urlsafe_b64encode(secret).decode("ascii") for secret in self._secrets]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path, *, synced: bool = True) -> None:
        """Write the secrets to a file atomically, mode 0600; `synced`: returns when it is on disk.

        Raises ConfigError on failure.
        """
        try:
            write_private(Path(path), self.text.encode("ascii"), synced=synced)
        except OSError as error:
            raise ConfigError(
                f"cannot write the key file {path}: {error.strerror}; free space, or make its "
                "folder writable"
            ) from None

    def rotated(self) -> Keyring:
        """Return a new keyring: a new random secret, then the newest old ones, KEPT in all."""
        return Keyring([secrets.token_bytes(SECRET_SIZE), *self._secrets][:KEPT])


def _with_id(keys: Sequence[Key], key_id: bytes) -> Key | None:
    return next((key for key in keys if key.id == key_id), None)


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _read_secrets(path: Path) -> tuple[list[bytes], _Place]:
    """Read a key file; return its secrets in order, and its path with its state.

    Raises ConfigError if it is missing, unreadable, malformed, empty or accessible to others.
    """
    try:
        # looked at before it is read: what is changed in between is read again
        place = _Place(path=path, identity=_identity(path.stat()))
        lines = read_private(path, FILE_BYTES).decode("ascii").splitlines()
    except FileNotFoundError:
        raise ConfigError(
            f"key file {path} does not exist: run 'osbench-coord keys new' on the "
            f"coordinator's host and copy its key file to every worker"
        ) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise ConfigError(
                f"key file {path} has more than {FILE_BYTES:,} bytes: it is not an osbench key "
                "file, or has old keys to delete; keys are one a line, the newest first"
            ) from None
        raise ConfigError(
            f"cannot read the key file {path}: {error.strerror}; make it readable for this user "
            "alone"
        ) from None
    except TooOpen as error:
        raise ConfigError(f"key file {path} {error}; run 'chmod 600 {path}'") from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"key file {path} is not an osbench key file (not ASCII): create one with "
            "'osbench-coord keys new'"
        ) from None
    keys = [_secret(path, number, line) for number, line in enumerate(lines, 1) if line]
    if not keys:
        raise ConfigError(f"key file {path} holds no key: run 'osbench-coord keys new --force'")
    return keys, place


def _secret(path: Path | str, number: int, line: str) -> bytes:
    if not _LINE.fullmatch(line):
        raise ConfigError(
            f"key file {path}: line {number} is not {SECRET_SIZE} bytes in URL-safe base64; copy "
            "the file again from the coordinator's host"
        )
    return base64.urlsafe_b64decode(line.rstrip("=") + "=")
