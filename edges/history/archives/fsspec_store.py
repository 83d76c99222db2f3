"""An archive in any store that fsspec supports: S3, SFTP and others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from osbench.common.errors import ArchiveError, UsageError
from osbench.common.network.exchange_deadline import LEAST_BYTES_S
from osbench.common.secrets.masking import error_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import plain
from osbench.coordinator.task.deployments.at_once import call_within

#: Seconds for each operation, and one more for each LEAST_BYTES_S bytes of a run.
TOTAL_S = 120.0
_INSTALL = "pip install 'osbench[archive]'"


class FsspecStore:
    """The store of an archive as objects below a URL that fsspec supports."""

    def __init__(self, url: str) -> None:
        """Open the file system of `url`.

        Raises UsageError if fsspec or a package for the URL is missing or the URL is unknown,
        ArchiveError for other errors.
        """
        self.place = mask_url(url).rstrip("/")
        try:
            import fsspec  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError(f"the archive {self.place}: a URL needs fsspec: {_INSTALL}") from None
        try:
            self._files, root = fsspec.url_to_fs(url)
        except ImportError as error:
            raise UsageError(
                f"the archive {self.place}: {_package_hint(url, error)}; or give a folder"
            ) from None
        except ValueError as error:
            raise UsageError(
                f"the archive {self.place}: {plain(str(error), 300)}; give a folder, or an address "
                "such as s3://BUCKET/FOLDER"
            ) from None
        except Exception as error:  # noqa: BLE001 - as `_told`
            raise self._error("open it", error) from None
        self._root: str = root.rstrip("/")

    def is_missing(self) -> bool:
        """Return whether there is neither an object nor a folder at the URL."""
        with self._told("look for it"):
            self._files.invalidate_cache()
            return not call_within(TOTAL_S, self._files.exists, self._root)

    def listed(self, folder: str) -> dict[str, int]:
        """Return name -> bytes of the objects in a folder, without the folder; {} if there is none.

        Raises ArchiveError if the bucket does not exist, or for other errors.
        """
        found: dict[str, int] = {}
        try:
            with self._told(f"list {folder}"):
                # of earlier listings: others write, too
                self._files.invalidate_cache()
                for one in call_within(TOTAL_S, self._files.ls, self._path(folder), detail=True):
                    name = str(one["name"]).rstrip("/").rpartition("/")[2]
                    if one["type"] == "file" and name:
                        found[name] = int(one["size"] or 0)
        except FileNotFoundError:
            self._check_bucket()
        return found

    def _check_bucket(self) -> None:
        """Raise ArchiveError if the URL has a bucket that does not exist.

        Other errors do not count: a user may have no right to list the whole bucket.
        """
        bucket = self._root.partition("/")[0]
        try:
            if bucket:
                call_within(TOTAL_S, self._files.ls, bucket)
        except FileNotFoundError:
            raise ArchiveError(
                f"the archive {self.place}: there is no bucket {plain(bucket)}: check its name, or"
                " create it"
            ) from None
        except Exception:  # noqa: BLE001 - as `_told`
            return

    def size(self, name: str) -> int | None:
        """Return the size of the object `name` in bytes; None without it. Raises ArchiveError."""
        try:
            with self._told(f"read {name}"):
                self._files.invalidate_cache()
                return int(call_within(TOTAL_S, self._files.info, self._path(name))["size"])
        except FileNotFoundError:
            return None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of small objects: name -> content; missing ones are left out.

        They are requested together. Raises ArchiveError.
        """
        if not names:
            return {}
        by_path = {self._path(name): name for name in names}
        found = {}
        # raised by some clients if all are missing
        with contextlib.suppress(FileNotFoundError), self._told(f"read {names[0]}"):
            total_s = TOTAL_S + len(names)
            answers = call_within(total_s, self._files.cat, list(by_path), on_error="return")
            for path, response in answers.items():
                if isinstance(response, bytes):
                    # memory:// has a slash before its paths, S3 has none
                    found[by_path.get(path) or by_path[f"/{path.lstrip('/')}"]] = response
                elif not isinstance(response, FileNotFoundError):
                    raise response
        return found

    def get(self, name: str, path: Path) -> bool:
        """Copy the object `name` to the file `path`; return False if there is none, else True.

        Raises ArchiveError.
        """
        try:
            with self._told(f"read {name}"):
                number = int(call_within(TOTAL_S, self._files.info, self._path(name))["size"])
                total_s = TOTAL_S + number / LEAST_BYTES_S
                call_within(total_s, self._files.get_file, self._path(name), str(path))
        except FileNotFoundError:
            return False
        return True

    def put(self, path: Path, name: str) -> None:
        """Store the file at `path` as the object `name`; creates folders if the store has some.

        An object of that name is replaced. Raises ArchiveError.
        """
        try:
            with self._told(f"write {name}"):
                total_s = TOTAL_S + path.stat().st_size / LEAST_BYTES_S
                call_within(TOTAL_S, self._make_folder, name.rpartition("/")[0])
                call_within(total_s, self._files.put_file, str(path), self._path(name))
        except FileNotFoundError as error:
            raise self._error(f"write {name}", error) from None

    def _make_folder(self, folder: str) -> None:
        """Create `folder` and the archive's folder if they are missing and the store has folders.

        A bucket is never created: its name may be misspelt.
        """
        for path in (self._root, self._path(folder)):
            if "/" in path and not self._files.isdir(path):
                with contextlib.suppress(FileExistsError):
                    self._files.mkdir(path, create_parents=False)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Translate exceptions within the `with` block to ArchiveError, except FileNotFoundError.

        `what`: the operation, for messages. All exceptions, because each client of fsspec has its
        own.
        """
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:  # noqa: BLE001 - each client has its own tree of errors
            raise self._error(what, error) from None

    def _error(self, what: str, error: Exception) -> ArchiveError:
        return ArchiveError(
            f"the archive {self.place}: cannot {what}: {plain(error_text(error), 500)}"
        )


def _package_hint(url: str, error: ImportError) -> str:
    """Return a message with the package that this kind of URL needs, for a failed import."""
    scheme = url.partition("://")[0]
    if scheme in ("s3", "s3a"):
        return f"s3:// needs s3fs: {_INSTALL}"
    # fsspec names its own package
    return plain(str(error), 300)
