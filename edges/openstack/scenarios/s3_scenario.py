"""Base of scenarios with objects of S3: their server, keys, buckets, and how they send requests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import pause
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common.aws_signature import SigningKey
from osbench.edges.openstack.common.byte_sizes import SizeDistribution
from osbench.edges.openstack.common.cloud_users import turn
from osbench.edges.openstack.common.object_body import PERIOD, GeneratedBody
from osbench.edges.openstack.common.object_set import ObjectSet
from osbench.edges.openstack.common.s3_api import (
    S3,
    S3_BUCKETS,
    S3Access,
    S3Client,
    S3Request,
    S3Response,
)
from osbench.edges.openstack.scenarios.transfer_scenario import TransferScenario
from osbench.edges.openstack.worker.client import asked_pause_s
from osbench.edges.openstack.worker.cloud_sessions import TIMEOUT_S
from osbench.edges.openstack.worker.transfer_client import (
    TransferClient,
    TransferRequest,
    refused_proxy,
)
from osbench.worker.http.tls_contexts import Trust, trust_of
from osbench.worker.http.user.request_base import request_limit_s
from osbench.worker.http.wire.prepared_request import AGENT

#: Key of a worker's context: the state of a workload's scenarios in one process.
_SITE = "s3_site"
#: Distributions that a process keeps.
_SIZES = 256
#: Most objects that a virtual user remembers for later deletions.
_REMEMBERED = 1000


@dataclass(frozen=True, kw_only=True)
class S3Site:
    """The server of a workload, with its keys and buckets by project, for one process."""

    access: S3Access
    client: TransferClient
    trust: Trust
    #: By project: the users' keys, and the bucket.
    keys: tuple[tuple[SigningKey, ...], ...]
    buckets: tuple[ObjectSet, ...]
    #: Distributions by the value of an argument.
    sizes: dict[str, SizeDistribution]
    chance: random.Random

    @classmethod
    def of(cls, context: Mapping[str, Any]) -> S3Site:
        """Return the site of a workload. Raises DeploymentError if a proxy is before its server."""
        access = S3Access.from_dict(context[S3])
        refused = refused_proxy(access.endpoint)
        if refused:
            raise DeploymentError(refused)
        projects = list(access.projects)
        return cls(
            access=access,
            client=TransferClient(request_limit_s(context) or TIMEOUT_S),
            trust=trust_of({"verify": access.verify}),
            keys=tuple(tuple(access.keys_of(project)) for project in projects),
            buckets=tuple(ObjectSet(context[S3_BUCKETS][project]) for project in projects),
            sizes={},
            chance=random.Random(),  # noqa: S311 - load, not secrets
        )


class S3Scenario(TransferScenario):
    """Base of scenarios that send requests to a server of S3, with keys of projects in turn."""

    _retries = 0
    _sign_bodies = False
    _lasted_s = 0.0

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Create the HTTP client of the workload in this process, before the load.

        Raises DeploymentError without the contexts `s3_credentials` and `s3_objects`.
        """
        for needed, key in (("s3_credentials", S3), ("s3_objects", S3_BUCKETS)):
            if key not in context:
                raise DeploymentError(
                    f"{context['scenario']} needs the context {needed}: add it to the workload"
                )
        context[_SITE] = S3Site.of(context)

    def begin(self, retries: int, *, sign_bodies: bool = False) -> None:
        """Set the arguments that all scenarios have."""
        self._retries, self._sign_bodies = retries, sign_bodies

    def new_name(self) -> str:
        """Return the unique key of a new object."""
        context = self.context
        return resource_names.in_iteration(
            context["run"], context["workload"], context["iteration"], ""
        )

    @cached_property
    def _place(self) -> tuple[int, int]:
        """Indexes of the project and of its key, in turn."""
        return turn(self.context["iteration"], self._site.keys)

    @property
    def _site(self) -> S3Site:
        site: S3Site = self.context[_SITE]
        return site

    @property
    def objects(self) -> ObjectSet:
        """Return the objects of the context in the bucket of this iteration."""
        return self._site.buckets[self._place[0]]

    @property
    def bucket(self) -> str:
        """Return the bucket of this iteration: of the projects in turn."""
        return self.objects.bucket

    @cached_property
    def client(self) -> S3Client:
        """Return the client of this iteration's user."""
        site, (project, user) = self._site, self._place
        return S3Client(
            site.access.endpoint,
            site.keys[project][user],
            self._send,
            signs_bodies=self._sign_bodies,
        )

    def draw_size(self, size: Any) -> int:
        """Return a size in bytes, drawn from the value of an argument."""
        sizes = self._site.sizes
        known = sizes.get(repr(size))
        if known is None:
            # each iteration may have others, of a data file
            if len(sizes) >= _SIZES:
                sizes.clear()
            known = sizes[repr(size)] = SizeDistribution(size)
        return known.draw(self._site.chance)

    def body(self, size: int) -> GeneratedBody:
        """Return a body of random bytes."""
        return GeneratedBody(size, self._site.chance.randrange(PERIOD))

    def number(self) -> int:
        """Return the number of an object of the context, at random.

        Raises AssertionError if there is none.
        """
        count = self.objects.count
        if not count:
            raise AssertionError(
                "there is no object to download: set s3_objects: {objects: N} of the contexts"
            )
        return self._site.chance.randrange(count)

    def position(self, last: int) -> int:
        """Return a random position in an object, from 0 to `last`."""
        return self._site.chance.randint(0, last)

    def check_size(self, size: int, wanted: int) -> None:
        """Raise AssertionError unless a download has as many bytes as `wanted`."""
        if size != wanted:
            raise AssertionError(f"an object of {wanted:,} bytes came back with {size:,}")

    def remember(self, key: str) -> None:
        """Keep the key of an object of this virtual user, for a later deletion."""
        kept: dict[int, list[str]] = vars(self.user).setdefault("s3_keys", {})
        keys = kept.setdefault(self._place[0], [])
        if len(keys) < _REMEMBERED:
            keys.append(key)

    def recall(self) -> str:
        """Return a key of `remember`, and forget it; "" if there is none."""
        keys = vars(self.user).get("s3_keys", {}).get(self._place[0])
        return keys.pop() if keys else ""

    # the wire

    def _send(self, request: S3Request) -> S3Response:
        """Send a request, and again after a pause that a response asks for, if there are retries.

        A repetition is an action "retry after 503", for example.
        """
        response = self._exchange(request)
        for _ in range(self._retries):
            pause_s = asked_pause_s(response.status, response.headers.get("retry-after", ""))
            if pause_s is None:
                break
            with ActionTimer(self, f"retry after {response.status}"):
                pause(pause_s)
                response = self._exchange(request)
        return response

    def _exchange(self, request: S3Request) -> S3Response:
        site = self._site
        traced = self.trace_headers() if site.access.traced else {}
        headers = {"User-Agent": AGENT, "Accept": "*/*", **request.headers, **traced}
        sent = TransferRequest(request.method, request.url, headers, request.body, site.trust)
        answer = site.client.exchange(sent, self._recorder, keep_body=request.keep)
        self._lasted_s = answer.lasted_s
        return S3Response(
            answer.status, answer.reason, answer.headers, answer.body, answer.body_bytes
        )

    def note_rate(self, action: str, size: int) -> None:
        """Add the rate of the last request, which moved `size` bytes, to the charts."""
        self.note_transfer(action, size, self._lasted_s)
