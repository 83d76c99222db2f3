"""Stores deployment records in the data directory: one private file each; one may be in use."""

from __future__ import annotations

import base64
import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.files.regular_files import (
    TooOpen,
    make_private_directory,
    read_private,
    read_regular,
    write_private,
)

#: Largest file with the name of a record, bytes.
_NAME_BYTES = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SALT_SIZE = 16


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An entry of the list of deployment records: the record, or the problem of its file."""

    name: str
    in_use: bool
    #: None if the file cannot be read; then `problem` says why.
    deployment: Deployment | None
    problem: str = ""


class Deployments:
    """The deployment records stored under a data directory. Methods raise DeploymentError."""

    def __init__(self, data_dir: str | Path) -> None:
        self._directory = Path(data_dir) / "deployments"
        # No record has this file name: theirs end in .json.
        self._in_use = self._directory / "in-use"

    def create(self, deployment: Deployment, *, use: bool | None = None) -> bool:
        """Store a new record; return whether it is in use afterwards.

        `use`: put it into use; None: only if no record is in use. Raises DeploymentError if the
        name is taken or invalid, or a file cannot be read or written.
        """
        path = self._path(deployment.name)
        if self._exists(path):
            raise DeploymentError(
                f"deployment {deployment.name} exists; delete it first, or take another name"
            )
        record = {
            "salt": base64.b64encode(secrets.token_bytes(_SALT_SIZE)).decode(),
            "spec": dict(deployment.spec),
        }
        self._write(path, json.dumps(record, indent=2))
        if use is None:
            use = self.used() is None
        if use:
            self.use(deployment.name)
        return use

    def names(self) -> list[str]:
        """Return the names of all records, sorted; empty if there are none."""
        names = [path.stem for path in self._directory.glob("*.json")]
        return sorted(name for name in names if _NAME.fullmatch(name))

    def records(self) -> list[Listed]:
        """Return all records, sorted by name; an unreadable one has a `problem` instead."""
        used = self.used()
        listed = []
        for name in self.names():
            try:
                deployment, problem = self.get(name), ""
            except DeploymentError as error:
                deployment, problem = None, str(error)
            listed.append(
                Listed(name=name, in_use=name == used, deployment=deployment, problem=problem)
            )
        return listed

    def used(self) -> str | None:
        """Return the name of the record in use; None if there is none, or its file is gone.

        Raises DeploymentError if the file with the name cannot be read.
        """
        try:
            name = read_regular(self._in_use, _NAME_BYTES).decode().strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise DeploymentError(
                f"cannot read {self._in_use}: {error}; `osbench-coord use NAME` writes it again"
            ) from None
        return name if _NAME.fullmatch(name) and self._exists(self._path(name)) else None

    def get(self, name: str | None = None) -> Deployment:
        """Read and return the record `name`; None: the record in use.

        Raises DeploymentError if there is no such record, or its file is damaged, cannot be read,
        or can be read by other users.
        """
        if name is None:
            name = self.used()
            if name is None:
                raise DeploymentError(
                    "no deployment is in use: run 'osbench-coord deployment create' "
                    "or 'osbench-coord deployment use NAME'"
                )
        path = self._path(name)
        try:
            record = json.loads(read_private(path))
            salt, spec = base64.b64decode(record["salt"]), record["spec"]
        except FileNotFoundError:
            raise DeploymentError(self._unknown(name)) from None
        except OSError as error:
            raise DeploymentError(
                f"cannot read {path}: {error.strerror}; restore it, or make it readable"
            ) from None
        except TooOpen as error:
            raise DeploymentError(f"{path} {error}; run 'chmod 600 {path}'") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DeploymentError(
                f"{path} is not a deployment record of osbench; delete the file, and create the "
                "deployment again"
            ) from None
        return Deployment.from_spec(name, spec, source=str(path), salt=salt)

    def use(self, name: str) -> None:
        """Put a record into use: commands that name no record take it.

        Raises DeploymentError if there is no record of that name.
        """
        if not self._exists(self._path(name)):
            raise DeploymentError(self._unknown(name))
        self._write(self._in_use, name + "\n")

    def delete(self, name: str) -> None:
        """Delete the file of a record; if it was in use, no record is in use afterwards.

        Raises DeploymentError if there is no such record, or a file cannot be read or deleted.
        """
        was_used = self.used() == name
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise DeploymentError(self._unknown(name)) from None
        except OSError as error:
            raise DeploymentError(
                f"cannot delete deployment {name}: {error.strerror}; make its folder writable"
            ) from None
        if was_used:
            try:
                self._in_use.unlink(missing_ok=True)
            except OSError as error:
                raise DeploymentError(
                    f"deployment {name} is deleted; remove {self._in_use} too: {error.strerror}"
                ) from None

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise DeploymentError(
                f"{name!r} cannot name a deployment; use up to 64 letters, digits, '.', '_' and "
                "'-', the first a letter or digit"
            )
        return self._directory / f"{name}.json"

    @staticmethod
    def _exists(path: Path) -> bool:
        try:
            return path.exists()
        except OSError as error:
            raise DeploymentError(
                f"cannot read {path}: {error.strerror}; make its folder readable"
            ) from None

    def _unknown(self, name: str) -> str:
        names = self.names()
        there = f"there are {', '.join(names)}" if names else "there is none"
        return f"no deployment has the name {name}; {there}"

    def _write(self, path: Path, text: str) -> None:
        try:
            make_private_directory(self._directory)
            self._directory.chmod(0o700)
            write_private(path, text.encode())
        except OSError as error:
            raise DeploymentError(
                f"cannot write {path}: {error.strerror}; free space, or make its folder writable"
            ) from None
