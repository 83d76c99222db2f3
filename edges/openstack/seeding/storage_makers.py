"""Kinds of a seed that store data: volumes of Cinder, shares of Manila, images of Glance."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from osbench.common.errors import ContextError, DeploymentError, Problem
from osbench.common.files.named_files import expanded
from osbench.edges.openstack.contexts.images import upload_image
from osbench.edges.openstack.seeding.seed_maker import (
    BROKEN,
    READY,
    UNFINISHED,
    SeedEntry,
    SeedMaker,
    SeedObject,
)

_GIB: Mapping[str, Any] = {"type": "integer", "minimum": 1}
_SIZE = re.compile(r"(\d+) ?(|B|KiB|MiB|GiB)")
_UNITS: Mapping[str, int] = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
#: Largest image, bytes.
_MOST_BYTES = 1 << 40


class SeedVolumes(SeedMaker):
    """Volumes of a size in GiB, 1 by default."""

    WORD: ClassVar[str] = "volumes"
    GROUP: ClassVar[str] = "volume"
    KIND: ClassVar[str] = "cinder.volumes"
    KEY: ClassVar[str] = "volume"
    PROPERTIES: ClassVar[Mapping[str, Any]] = {"size": _GIB, "type": {"type": "string"}}
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "size", "volume_type")
    WAIT: ClassVar[str] = "cinder_volume_create"
    READY_STATUS: ClassVar[str] = "available"

    def quotas(self) -> dict[str, int]:
        """Return the numbers of volumes and of their GiB."""
        size = self.option.get("size", 1)
        return {"volumes": self.entry.count, "gigabytes": self.entry.count * size}

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return size and type."""
        chosen = {"volume_type": self.option["type"]} if "type" in self.option else {}
        return {"size": self.option.get("size", 1), **chosen}


class SeedShares(SeedMaker):
    """Shares of a size in GiB, 1 by default, with the protocol `share_proto`, NFS by default."""

    WORD: ClassVar[str] = "shares"
    GROUP: ClassVar[str] = "share"
    KIND: ClassVar[str] = "manila.shares"
    KEY: ClassVar[str] = "share"
    PROPERTIES: ClassVar[Mapping[str, Any]] = {
        "size": _GIB,
        "share_proto": {"type": "string"},
        "share_type": {"type": "string"},
    }
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "size", "share_proto", "share_type")
    WAIT: ClassVar[str] = "manila_share_create"
    READY_STATUS: ClassVar[str] = "available"

    def quotas(self) -> dict[str, int]:
        """Return the numbers of shares and of their GiB."""
        size = self.option.get("size", 1)
        return {"shares": self.entry.count, "gigabytes": self.entry.count * size}

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return size, protocol and type."""
        fields = {"size": self.option.get("size", 1)}
        fields["share_proto"] = self.option.get("share_proto", "NFS")
        return fields | {key: self.option[key] for key in ("share_type",) if key in self.option}


class SeedImages(SeedMaker):
    """Images of zeros of a size, or of a file."""

    WORD: ClassVar[str] = "images"
    GROUP: ClassVar[str] = "image"
    KIND: ClassVar[str] = "glance.images"
    PROPERTIES: ClassVar[Mapping[str, Any]] = {
        "size": {"type": ["string", "integer"]},
        "file": {"type": "string"},
        "disk_format": {"type": "string"},
        "container_format": {"type": "string"},
    }
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "owner", "disk_format", "container_format")

    @classmethod
    def problems(cls, entry: SeedEntry, entries: Sequence[SeedEntry]) -> list[Problem]:
        """Return problems also for a malformed size, a missing file, or both keys."""
        found, options = super().problems(entry, entries), entry.options
        if "size" in options and "file" in options:
            found.append(Problem(entry.place, "give size or file: a file has its own size"))
        if "size" in options and not 0 < _bytes(options["size"]) <= _MOST_BYTES:
            message = f"must be a size from 1 B to 1024 GiB, such as 1 KiB, got {options['size']!r}"
            found.append(Problem(f"{entry.place}.size", message))
        if "file" in options and not expanded(options["file"]).is_file():
            message = f"there is no file {options['file']}; give an existing one"
            found.append(Problem(f"{entry.place}.file", message))
        return found

    def prepare(self) -> None:
        """Make the file of zeros, which takes no space on disk. Raises DeploymentError."""
        super().prepare()
        if "file" in self.option:
            self._file = expanded(self.option["file"])
            return
        try:
            # removed together with this object
            self._zeros = tempfile.NamedTemporaryFile(prefix="osbench-seed-")  # noqa: SIM115 - above
            self._zeros.truncate(_bytes(self.option.get("size", "1 KiB")))
        except OSError as error:
            raise DeploymentError(
                f"images: cannot write {tempfile.gettempdir()}: {error.strerror}; free space, or "
                "set TMPDIR"
            ) from None
        self._file = Path(self._zeros.name)

    def state(self, one: Mapping[str, Any], parent: str) -> str:
        """Return READY for an image with data, UNFINISHED for an image that awaits them."""
        # other states are of uploads that were interrupted
        known = {"active": READY, "deactivated": READY, "queued": UNFINISHED}
        return known.get(str(one["status"]), BROKEN)

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return the formats."""
        return {
            "disk_format": self.option.get("disk_format", "raw"),
            "container_format": self.option.get("container_format", "bare"),
        }

    def complete(self, one: SeedObject) -> None:
        """Upload the data, unless an earlier attempt has. Raises ContextError if that broke off."""
        found = self.cloud.document("GET", "glance", f"images/{one.identity}")
        state = self.state(found, "")
        if state == UNFINISHED:
            upload_image(self.cloud, one.identity, self._file)
        elif state == BROKEN:
            raise ContextError(f"an image is in {found['status']}: its upload was interrupted")


def _bytes(written: str | int) -> int:
    """Return the bytes of a size such as "1 KiB" or 1024; 0 if it is malformed."""
    found = _SIZE.fullmatch(str(written))
    return int(found[1]) * _UNITS[found[2]] if found else 0
