"""Stores of archives: the port of five methods, and a folder behind it.

Files of an archive are written once and never changed, so that no writer waits for another one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from osbench.common.errors import ArchiveError, UsageError
from osbench.common.named_files import expanded
from osbench.common.ports import disk
from osbench.common.regular_files import open_regular, read_regular, size_of, sync_directory
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.storage.frames import reason_of

#: Bytes that are copied at once.
_CHUNK = 1 << 20


class ArchiveStore(Protocol):
    """Files of an archive by their names, such as `index/NAME`. All methods raise ArchiveError."""

    @property
    def place(self) -> str:
        """The folder or URL, without secrets."""

    def is_missing(self) -> bool:
        """Return whether the folder of the archive is known not to exist."""

    def listed(self, folder: str) -> dict[str, int]:
        """Names in a folder and their bytes; none if there is no such folder."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; None if there is none."""

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of small files by name; missing files are left out."""

    def get(self, name: str, path: Path) -> bool:
        """Copy a file to `path`; False if there is none."""

    def put(self, path: Path, name: str) -> None:
        """Store the file at `path`, in one step if the store can do so."""


class FolderStore:
    """A folder of this host, or a folder that several hosts share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def place(self) -> str:
        """The path of the folder."""
        return str(self._root)

    def is_missing(self) -> bool:
        """Return whether the folder does not exist."""
        return not self._root.exists()

    def listed(self, folder: str) -> dict[str, int]:
        """Names in a folder and their bytes."""
        found = {}
        try:
            with self._told(folder, "list"), os.scandir(self._root / folder) as entries:
                for entry in entries:
                    # drafts of `put` begin with a dot
                    if not entry.name.startswith("."):
                        with contextlib.suppress(FileNotFoundError):
                            found[entry.name] = entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            return {}
        return found

    def size(self, name: str) -> int | None:
        """Bytes of a file."""
        try:
            with self._told(name, "read"):
                return size_of(self._root / name)
        except FileNotFoundError:
            return None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Contents of small files."""
        found = {}
        for name in names:
            path = self._root / name
            with contextlib.suppress(FileNotFoundError), self._told(name, "read"):
                found[name] = read_regular(path, size_of(path))
        return found

    def get(self, name: str, path: Path) -> bool:
        """Copy a file."""
        try:
            with (
                self._told(name, "read"),
                open_regular(self._root / name) as source,
                path.open("wb") as target,
            ):
                shutil.copyfileobj(source, target, _CHUNK)
        except FileNotFoundError:
            return False
        return True

    def put(self, path: Path, name: str) -> None:
        """Write a draft next to the file, then rename it."""
        target = self._root / name
        draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            with self._told(name, "write", missing=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as source, draft.open("xb") as file:
                    shutil.copyfileobj(source, file, _CHUNK)
                    file.flush()
                    disk.fsync(file.fileno())
                draft.replace(target)
                sync_directory(target.parent)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()

    @contextlib.contextmanager
    def _told(self, name: str, verb: str, *, missing: bool = False) -> Iterator[None]:
        """Translate errors of the file system; that of a missing file only if `missing`."""
        try:
            yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not missing:
                raise
            raise ArchiveError(
                f"the archive {self.place}: cannot {verb} {name}: {reason_of(error)}"
            ) from None


def store_of(url: str) -> ArchiveStore:
    """The store at a path or a URL. Raises UsageError, ArchiveError."""
    scheme, mark, _ = url.partition("://")
    if not url.strip() or (mark and not scheme):
        raise UsageError("an archive is a folder, or a URL such as s3://BUCKET/FOLDER")
    if not mark:
        return FolderStore(expanded(url).absolute())
    parts = urlsplit(url)
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise UsageError(f"the archive {mask_url(url)}: write file:///PATH, with three slashes")
        return FolderStore(Path(unquote(parts.path)))
    if scheme in ("http", "https"):
        raise UsageError(
            f"the archive {mask_url(url)}: nothing can be written over HTTP; for a server with"
            " the protocol of S3 give s3://BUCKET/FOLDER, and its address in AWS_ENDPOINT_URL"
        )
    if not parts.netloc and not parts.path.strip("/"):
        raise UsageError(f"the archive {mask_url(url)}: name a place, as in s3://BUCKET/FOLDER")
    if parts.password is not None:
        raise UsageError(
            f"the archive {mask_url(url)}: a URL with a password is seen by others; leave it out,"
            " and give credentials by environment or fsspec's configuration"
        )
    # it takes a while to import, and is an extra
    from osbench.coordinator.archives.fsspec_store import FsspecStore  # noqa: PLC0415 - see above

    return FsspecStore(url)
