"""The objects that the context `s3_objects` makes: names and sizes, from a number alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.edges.openstack.common.byte_sizes import SizeDistribution


class ObjectSet:
    """A bucket with numbered objects, whose sizes are drawn the same in each process."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        """`kept`: `bucket`, number of `objects`, and their `size` as in a task."""
        self.bucket: str = kept["bucket"]
        self.count: int = kept["objects"]
        self._sizes = SizeDistribution(kept["size"])

    def key(self, number: int) -> str:
        """Return the key of an object, numbered from 0."""
        return f"{self.bucket}-{number}"

    def size(self, number: int) -> int:
        """Return the size of an object in bytes."""
        return self._sizes.draw(random.Random(self.key(number)))  # noqa: S311 - load, not secrets
