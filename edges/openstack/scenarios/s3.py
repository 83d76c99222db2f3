"""Scenarios of object storage by S3: put, get, list and delete objects, and upload in parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.common.plugin.scenario import configure
from osbench.edges.openstack.common.byte_sizes import byte_size
from osbench.edges.openstack.common.s3_api import PAGE
from osbench.edges.openstack.scenarios.s3_arguments import (
    SHARES,
    UPLOAD_BYTES,
    USUAL_PART_BYTES,
    argument_problems,
    share_weights,
)
from osbench.edges.openstack.scenarios.s3_scenario import S3Scenario

#: Usual size of an object and of a range of it, bytes.
_SIZE = 64 << 10
_EMPTY: Mapping[str, Any] = {"s3_credentials": {}, "s3_objects": {"objects": 0}}
_FILLED: Mapping[str, Any] = {"s3_credentials": {}, "s3_objects": {}}


class S3Objects(S3Scenario):
    """Scenarios with objects in buckets of S3, which the context `s3_objects` makes before.

    Sizes are bytes, texts such as 64 KiB, `{min, max, distribution}`, or lists of `{size, weight}`.
    Bodies are random bytes, sent and received in pieces. `retries` is how often a request is sent
    again after 429 or 503 with Retry-After. With `sign_bodies` signatures include the digest of
    bodies, which are read twice.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in sizes, shares, pages and retries."""
        return argument_problems(method, args)

    # scenarios

    @configure(name="S3Objects.put_object", context=_EMPTY)
    def put_object(self, size: Any = _SIZE, sign_bodies: bool = False, retries: int = 0) -> None:
        """Upload an object of a drawn `size`; it stays until the end of the load."""
        self.begin(retries, sign_bodies=sign_bodies)
        self._put(size)

    @configure(name="S3Objects.get_object", context=_FILLED)
    def get_object(self, retries: int = 0) -> None:
        """Download an object of the context, picked at random, and check its size."""
        self.begin(retries)
        self._get()

    @configure(name="S3Objects.get_object_range", context=_FILLED)
    def get_object_range(self, range_size: Any = _SIZE, retries: int = 0) -> None:
        """Download a part of an object, both picked at random, and check its size."""
        self.begin(retries)
        self._get_range(range_size)

    @configure(name="S3Objects.list_objects", context=_FILLED)
    def list_objects(self, page_size: int = PAGE, retries: int = 0) -> None:
        """List a bucket by pages, and check that at least the objects of the context are there."""
        self.begin(retries)
        self._list(page_size)

    @configure(name="S3Objects.delete_object", context=_EMPTY)
    def delete_object(self, size: Any = _SIZE, sign_bodies: bool = False, retries: int = 0) -> None:
        """Upload an object of a drawn `size`, and delete it."""
        self.begin(retries, sign_bodies=sign_bodies)
        self._delete(self._put(size))

    @configure(name="S3Objects.multipart_upload", context=_EMPTY)
    def multipart_upload(
        self,
        size: Any = UPLOAD_BYTES,
        part_size: Any = USUAL_PART_BYTES,
        sign_bodies: bool = False,
        retries: int = 0,
    ) -> None:
        """Upload an object in parts, one after another; delete the parts if that fails."""
        self.begin(retries, sign_bodies=sign_bodies)
        whole, part = self.draw_size(size), byte_size(part_size)
        key = self.new_name()
        with ActionTimer(self, "s3.multipart_upload"):
            with ActionTimer(self, "create"):
                upload = self.client.create_upload(self.bucket, key)
            try:
                tags = self._parts(key, upload, whole, part)
                with ActionTimer(self, "complete"):
                    self.client.complete_upload(self.bucket, key, upload, tags)
            except Exception:
                with ActionTimer(self, "abort"):
                    self.client.abort_upload(self.bucket, key, upload)
                raise

    @configure(name="S3Objects.mix", context=_FILLED)
    def mix(
        self,
        shares: dict[str, Any] | None = None,
        size: Any = _SIZE,
        range_size: Any = _SIZE,
        page_size: int = PAGE,
        sign_bodies: bool = False,
        retries: int = 0,
    ) -> None:
        """Put, get, get a range, list or delete, drawn by `shares`, such as {put: 20 %, get: 80 %}.

        A deletion takes an object that this virtual user has put; without one it puts one first.
        """
        self.begin(retries, sign_bodies=sign_bodies)
        weights = share_weights(shares if shares is not None else SHARES)
        (chosen,) = random.choices(list(weights), list(weights.values()))  # noqa: S311 - load
        parts: Mapping[str, Callable[[], object]] = {
            "put": lambda: self.remember(self._put(size)),
            "get": self._get,
            "range": lambda: self._get_range(range_size),
            "list": lambda: self._list(page_size),
            "delete": lambda: self._delete(self.recall() or self._put(size)),
        }
        parts[chosen]()

    # atomic actions

    @action_timer("s3.put_object")
    def _put(self, size: Any) -> str:
        """Upload an object; return its key."""
        key = self.new_name()
        body = self.body(self.draw_size(size))
        self.client.put_object(self.bucket, key, body)
        self.note_rate("s3.put_object", len(body))
        return key

    @action_timer("s3.get_object")
    def _get(self) -> None:
        number = self.number()
        size = self.client.get_object(self.bucket, self.objects.key(number))
        self.check_size(size, self.objects.size(number))
        self.note_rate("s3.get_object", size)

    @action_timer("s3.get_object_range")
    def _get_range(self, range_size: Any) -> None:
        number = self.number()
        whole = self.objects.size(number)
        if not whole:
            raise AssertionError("an empty object has no ranges: set a min of size above 0")
        wanted = min(self.draw_size(range_size), whole)
        first = self.position(whole - wanted)
        key = self.objects.key(number)
        size = self.client.get_range(self.bucket, key, first, first + wanted - 1)
        self.check_size(size, wanted)
        self.note_rate("s3.get_object_range", size)

    @action_timer("s3.list_objects")
    def _list(self, page_size: int) -> None:
        listed, token = 0, ""
        while True:
            with ActionTimer(self, "page"):
                page = self.client.list_page(self.bucket, token, page_size)
            listed += len(page.keys)
            token = page.token
            if not token:
                break
        wanted = self.objects.count
        if listed < wanted:
            raise AssertionError(f"{listed} objects are listed, but {wanted} were made before")

    @action_timer("s3.delete_object")
    def _delete(self, key: str) -> None:
        self.client.delete_object(self.bucket, key)

    def _parts(self, key: str, upload: str, whole: int, part: int) -> list[str]:
        tags = []
        for number, first in enumerate(range(0, max(whole, 1), part), 1):
            body = self.body(min(part, whole - first))
            with ActionTimer(self, "part"):
                tags.append(self.client.upload_part(self.bucket, key, upload, number, body))
                self.note_rate("s3.multipart_upload > part", len(body))
        return tags
