"""Stores of archives: an interface of five methods, and a folder that implements it.

Files of an archive are written once and never changed, so that writers need no locks.
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
from osbench.common.files.named_files import expanded
from osbench.common.files.regular_files import open_regular, read_regular, size_of, sync_directory
from osbench.common.network.server_address import server_address_fault
from osbench.common.plugin import entry_points
from osbench.common.ports import disk
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.results.storage.frames import reason_of

#: Bytes that are copied at once.
_CHUNK = 1 << 20
#: Schemes of fsspec whose URLs have a host; object stores have a bucket there.
_WITH_HOST = ("ftp", "sftp", "smb", "ssh", "webdav", "webdavs", "webhdfs")


class ArchiveStore(Protocol):
    """The store of an archive: files by their names, such as `index/NAME`.

    Methods raise ArchiveError if the store cannot be reached or refuses.
    """

    @property
    def place(self) -> str:
        """Return the folder or URL of the archive, without secrets."""

    def is_missing(self) -> bool:
        """Return whether the folder of the archive does not exist."""

    def listed(self, folder: str) -> dict[str, int]:
        """Return the files directly in a folder: name (without folder) -> size in bytes.

        {} if there is no such folder.
        """

    def size(self, name: str) -> int | None:
        """Return the size of the file `name` in bytes; None if there is none."""

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of small files: name -> content; missing files are left out."""

    def get(self, name: str, path: Path) -> bool:
        """Copy the file `name` to `path` on this host; return False if there is no such file."""

    def put(self, path: Path, name: str) -> None:
        """Store the file at `path` under `name`, in one step if the store can do so.

        A file of that name is replaced.
        """


class FolderStore:
    """An archive in a folder of this host, or in a folder that several hosts share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def place(self) -> str:
        """Return the path of the folder."""
        return str(self._root)

    def is_missing(self) -> bool:
        """Return whether the folder of the archive does not exist."""
        return not self._root.exists()

    def listed(self, folder: str) -> dict[str, int]:
        """Return the entries of a folder: name -> size in bytes; {} if there is no folder.

        Names with a leading dot, such as drafts, are left out. Raises ArchiveError.
        """
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
        """Return the bytes of the file `name`; None if there is none. Raises ArchiveError."""
        try:
            with self._told(name, "read"):
                return size_of(self._root / name)
        except FileNotFoundError:
            return None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return name -> content of the files that exist, each read whole. Raises ArchiveError."""
        found = {}
        for name in names:
            path = self._root / name
            with contextlib.suppress(FileNotFoundError), self._told(name, "read"):
                found[name] = read_regular(path, size_of(path))
        return found

    def get(self, name: str, path: Path) -> bool:
        """Copy the file `name` to `path`; return False if it, or the folder of `path`, is missing.

        Raises ArchiveError for other errors of either file.
        """
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
        """Store the file at `path` under `name`: write a draft next to it, sync it, then rename it.

        Creates missing folders and replaces a file of that name. Raises ArchiveError.
        """
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
        """Turn OSError within the `with` block into ArchiveError.

        `name`, `verb`: the file and the operation, for messages. FileNotFoundError is turned only
        if `missing`, else it propagates.
        """
        try:
            yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not missing:
                raise
            raise ArchiveError(
                f"the archive {self.place}: cannot {verb} {name}: {reason_of(error)}; check its "
                "address and permissions"
            ) from None


def store_of(url: str) -> ArchiveStore:
    """Return the store at a path or a URL; a folder is not created and need not exist.

    Raises UsageError for a URL that is invalid, HTTP, has a password or needs a missing package or
    variable, ArchiveError if it cannot be opened, PluginError if no package has stores of Swift.
    """
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
            f"the archive {mask_url(url)}: osbench only reads over HTTP; for a server with"
            " the protocol of S3 give s3://BUCKET/FOLDER, and its address in AWS_ENDPOINT_URL"
        )
    if not parts.netloc and not parts.path.strip("/"):
        raise UsageError(f"the archive {mask_url(url)}: name a place, as in s3://BUCKET/FOLDER")
    if parts.password is not None:
        raise UsageError(
            f"the archive {mask_url(url)}: a URL with a password is seen by others; leave it out,"
            " and give credentials by environment or fsspec's configuration"
        )
    if scheme in _WITH_HOST and (fault := server_address_fault(url, (scheme,))):
        raise UsageError(f"the archive {mask_url(url)}: its address {fault}")
    # both take a while to import: the former is part of another edge, the latter an extra
    if scheme == "swift":
        store: ArchiveStore = entry_points.load_object("archive_store", scheme)(url)
        return store
    from osbench.edges.history.archives.fsspec_store import FsspecStore  # noqa: PLC0415 - see above

    return FsspecStore(url)
