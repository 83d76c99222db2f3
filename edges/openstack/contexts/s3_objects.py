"""The context `s3_objects`: a bucket of S3 in each project, with objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import call_each, s3_server
from osbench.plugin.errors import ContextError

#: Uploads of a bucket are planned in about so many parts.
_PARTS = 10_000


class S3ObjectsContext(context.Context):
    """Creates a bucket in each project of `s3_credentials`, and uploads random bytes to it.

    Iterations put their objects there too; all are deleted with the bucket.
    """

    NAME: ClassVar[str] = "s3_objects"
    ORDER: ClassVar[int] = 370
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "objects": {
                "type": "integer",
                "minimum": 0,
                "maximum": 10_000_000,
                "description": "objects in each bucket; 10 by default",
            },
            "size": {
                **s3_server.SIZE_SCHEMA,
                "description": "size of an object; 64 KiB by default: "
                + s3_server.SIZE_SCHEMA["description"],
            },
        },
        "additionalProperties": False,
        "examples": [{"objects": 100, "size": {"min": "4 KiB", "max": "1 MiB"}}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if `size` is not a size; else []."""
        return list(s3_server.size_problems(config, "size"))

    def setup(self) -> None:
        """Create the buckets and their objects, several at once; store the buckets in `made`.

        Raises ContextError without the context `s3_credentials`, RequestFailed if the server
        refuses a request.
        """
        owner, access = self._owner()
        run, workload = self.surroundings.run, self.surroundings.workload
        count, size = self.config.get("objects", 10), self.config.get("size", "64 KiB")
        kept = {
            project: {
                "bucket": s3_server.bucket_name(run, workload, number),
                "objects": count,
                "size": size,
            }
            for number, project in enumerate(access.projects)
        }
        self.made[s3_server.S3_BUCKETS] = kept
        # stored before the first request
        self.keep()
        tell = self.surroundings.tell
        call_each(
            tell,
            "buckets made",
            kept,
            lambda project: owner.create(project, kept[project]["bucket"]),
        )
        step = max(1, count // _PARTS)
        planned = [
            (project, range(first, min(first + step, count)))
            for project in kept
            for first in range(0, count, step)
        ]
        call_each(
            tell,
            "parts of the objects made",
            planned,
            lambda part: owner.fill(part[0], s3_server.ObjectSet(kept[part[0]]), part[1]),
        )

    def cleanup(self) -> None:
        """Delete the buckets of setup with all objects. Raises ContextError if some remain."""
        kept: dict[str, dict[str, Any]] = self.made.get(s3_server.S3_BUCKETS, {})
        if not kept:
            return
        owner, _ = self._owner()
        call_each(
            self.surroundings.tell,
            "buckets removed",
            kept,
            lambda project: owner.remove(project, kept[project]["bucket"]),
        )

    def _owner(self) -> tuple[s3_server.BucketOwner, s3_server.S3Access]:
        known = self.surroundings.context.get(s3_server.S3)
        if known is None:
            raise ContextError("context s3_objects needs the context s3_credentials: add it")
        access = s3_server.S3Access.from_dict(known)
        return s3_server.BucketOwner(access), access
