"""A file encrypted with Fernet, whose key is in another file."""

from __future__ import annotations

from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from osbench.common.errors import OsbenchError
from osbench.common.files.regular_files import TooOpen, read_private, sync_directory, write_private


class EncryptedFile:
    """An encrypted file of mode 0600, with its key in `key_path`. Methods raise OsbenchError."""

    def __init__(self, path: Path, key_path: Path) -> None:
        self.path = path
        self._key_path = key_path

    def read(self) -> bytes | None:
        """Return the decrypted content; None if the file does not exist.

        Raises OsbenchError if either file cannot be read or is open to other users, or if the key
        is missing or the wrong one.
        """
        try:
            token = read_private(self.path)
        except FileNotFoundError:
            return None
        except (OSError, TooOpen) as error:
            raise OsbenchError(
                f"cannot read {self.path}: {error}; make it readable for this user alone: chmod 600"
            ) from None
        if not self._key_path.exists():
            raise OsbenchError(
                f"{self.path} cannot be decrypted: {self._key_path} is not there; copy it from the "
                "data directory in which the run began"
            )
        try:
            return self._cipher().decrypt(token)
        except InvalidToken:
            raise OsbenchError(
                f"{self.path} cannot be decrypted with {self._key_path}: one of the two was "
                "changed, or is of another data directory; put it back from a copy"
            ) from None

    def write(self, content: bytes) -> None:
        """Encrypt `content` and replace the file atomically; returns when it is on disk.

        Creates the key file with a new key if it is missing. Raises OsbenchError if a file cannot
        be written, or the key cannot be read.
        """
        token = self._cipher().encrypt(content)
        try:
            write_private(self.path, token)
        except OSError as error:
            raise OsbenchError(
                f"cannot write {self.path}: {error.strerror}; free space, or make its folder "
                "writable"
            ) from None

    def remove(self) -> None:
        """Remove the file if it exists; the key file stays. Raises OsbenchError."""
        try:
            if self.path.exists():
                self.path.unlink(missing_ok=True)
                sync_directory(self.path.parent)
        except OSError as error:
            raise OsbenchError(
                f"cannot remove {self.path}: {error.strerror}; remove it by hand"
            ) from None

    def _cipher(self) -> Fernet:
        remedy = "restore it from a copy, with mode 0600"
        try:
            if not self._key_path.exists():
                remedy = "free space, or make its folder writable"
                write_private(self._key_path, Fernet.generate_key())
            return Fernet(read_private(self._key_path))
        except (OSError, TooOpen, ValueError) as error:
            raise OsbenchError(f"cannot use the key {self._key_path}: {error}; {remedy}") from None
