"""An archive in a container of Swift, with the login of OpenStack's clients: OS_* variables."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from keystoneauth1 import exceptions

from osbench.common.errors import ArchiveError, DeploymentError, UsageError
from osbench.common.files.foreign_json import read_json
from osbench.common.network.causes import root_cause
from osbench.common.plugin.cloud_platform import installed_cloud
from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import plain, size
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions
from osbench.edges.openstack.coordinator.environment_record import openstack_variables

#: Longest wait for data, seconds.
_TIMEOUT_S = 60.0
#: Objects that are read at the same time.
_AT_ONCE = 8
#: Largest object that Swift stores without segments, bytes.
MOST_BYTES = 5 << 30
_CHUNK = 1 << 20
_ANY: Mapping[str, str] = {"Accept": "*/*"}


class SwiftStore:
    """The store of an archive as objects of a container: `swift://CONTAINER/FOLDER`."""

    def __init__(self, url: str) -> None:
        """Read OS_* variables, or the cloud of clouds.yaml that OS_CLOUD names; sends no request.

        Raises UsageError if the URL has no container, or variables or cloud are missing or wrong.
        """
        self.place = mask_url(url).rstrip("/")
        self._container, _, root = url.removeprefix("swift://").partition("/")
        self._prefix = f"{root.strip('/')}/" if root.strip("/") else ""
        if not self._container:
            raise UsageError(
                f"the archive {self.place}: name a container, as in swift://CONTAINER/FOLDER"
            )
        variables = openstack_variables(os.environ)
        if not variables:
            raise UsageError(
                f"the archive {self.place}: Swift needs the variables of OpenStack's clients: load "
                "openrc, or set OS_CLOUD"
            )
        try:
            made = installed_cloud().record_of_environment("archive", variables).deployment
            (credential,) = made.credentials.values()
            sessions = ThreadSessions(credential, _TIMEOUT_S)
            #: Sends the requests.
            self.cloud = Cloud(Account(credential), sessions)
        except DeploymentError as error:
            raise UsageError(f"the archive {self.place}: {error}") from None

    def is_missing(self) -> bool:
        """Return whether nothing is below the URL. Raises ArchiveError, also without container."""
        with self._told("look for it"):
            return not self._page({"prefix": self._prefix, "limit": "1"})

    def listed(self, folder: str) -> dict[str, int]:
        """Return the size (bytes) of each object in a folder, by its name there; {} if none.

        Folders in it are left out. Raises ArchiveError, also if there is no container.
        """
        prefix = f"{self._prefix}{folder}/"
        found: dict[str, int] = {}
        params = {"prefix": prefix, "delimiter": "/"}
        with self._told(f"list {folder}"):
            while (page := self._page(params)) and _marker(page) > params.get("marker", ""):
                for one in page:
                    # of an object; else it is a folder below
                    if one.get("name", prefix) != prefix:
                        found[str(one["name"]).removeprefix(prefix)] = int(one["bytes"])
                params["marker"] = _marker(page)
        return found

    def _page(self, params: Mapping[str, str]) -> list[dict[str, Any]]:
        response = self._request("GET", "", (200, 204, 404), params={"format": "json", **params})
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise self._no_container()
        page: list[dict[str, Any]] = read_json(response.content) if response.content else []
        return page

    def size(self, name: str) -> int | None:
        """Return the size of object `name`, bytes; None if there is none. Raises ArchiveError."""
        with self._told(f"read {name}"):
            response = self._request("HEAD", name, (200, 204, 404))
            found = response.status_code != HTTPStatus.NOT_FOUND
            return int(response.headers["Content-Length"]) if found else None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of small objects: name -> content; missing ones are left out.

        They are requested several at once. Raises ArchiveError.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            contents = list(pool.map(self._content, names))
        found = zip(names, contents, strict=True)
        return {name: content for name, content in found if content is not None}

    def _content(self, name: str) -> bytes | None:
        with self._told(f"read {name}"):
            response = self._request("GET", name, (200, 404))
        return response.content if response.status_code == HTTPStatus.OK else None

    def get(self, name: str, path: Path) -> bool:
        """Copy the object `name` to the file `path`; return False if there is none, else True.

        Raises ArchiveError, and OSError if `path` cannot be written.
        """
        with (
            self._told(f"read {name}"),
            self._request("GET", name, (200, 404), stream=True) as response,
        ):
            if response.status_code == HTTPStatus.NOT_FOUND:
                return False
            left = MOST_BYTES
            with path.open("wb") as target:
                for part in response.iter_content(_CHUNK):
                    left -= len(part)
                    if left < 0:
                        raise self._error(f"read {name}", f"it has more than {size(MOST_BYTES)}")
                    target.write(part)
        return True

    def put(self, path: Path, name: str) -> None:
        """Store the file at `path` as the object `name`, in one step; replaces an object.

        Raises ArchiveError, and OSError if `path` cannot be read.
        """
        with path.open("rb") as source, self._told(f"write {name}"):
            number = os.fstat(source.fileno()).st_size
            if number > MOST_BYTES:
                raise ArchiveError(
                    f"the archive {self.place}: {name} has {size(number)}, and Swift takes objects"
                    f" of at most {size(MOST_BYTES)}; use another archive for this run"
                )
            # Swift refuses content with another digest, such as a file that was sent in part
            digest = hashlib.file_digest(source, _md5).hexdigest()
            # a token that is refused is renewed here: a body is not sent twice
            if self._request("HEAD", "", (200, 204, 404)).status_code == HTTPStatus.NOT_FOUND:
                raise self._no_container()
            source.seek(0)
            headers = {"ETag": digest, "Content-Type": "application/octet-stream"}
            self._request("PUT", name, (201,), headers=headers, data=source)

    def _request(
        self,
        method: str,
        name: str,
        expected: tuple[int, ...],
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> requests.Response:
        path = quote(self._container, safe="")
        if name:
            path += f"/{quote(self._prefix + name)}"
        sent = {**_ANY, **(headers or {})}
        return self.cloud.request(method, "swift", path, headers=sent, expected=expected, **options)

    def _no_container(self) -> ArchiveError:
        return ArchiveError(
            f"the archive {self.place}: there is no container {plain(self._container)}: check its"
            " name, or create it"
        )

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Translate errors of requests within the `with` block to ArchiveError."""
        try:
            yield
        except (exceptions.ClientException, requests.RequestException) as error:
            raise self._error(what, root_cause(error)) from None
        except (
            *(AuthenticationFailed, DeploymentError, RequestFailed),
            *(ConnectionError, TimeoutError),
        ) as error:
            raise self._error(what, str(error)) from None
        except (LookupError, TypeError, ValueError) as error:
            raise self._error(what, f"its response is not Swift's: {error!r}") from None

    def _error(self, what: str, why: str) -> ArchiveError:
        return ArchiveError(
            f"the archive {self.place}: cannot {what}: {plain(mask_text(why), 500)}"
        )


def _marker(page: Sequence[Mapping[str, Any]]) -> str:
    return str(page[-1].get("name") or page[-1]["subdir"])


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)
