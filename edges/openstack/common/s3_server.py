"""A server of S3 as contexts use it: address, keys, and buckets that are made and removed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.common.network.bounded_adapter import bounded_session
from osbench.common.network.causes import root_cause
from osbench.common.ports import clock as time
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common.byte_sizes import SIZE_SCHEMA, size_problems
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.object_body import GeneratedBody
from osbench.edges.openstack.common.object_set import ObjectSet
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.common.s3_api import (
    S3,
    S3_BUCKETS,
    S3Access,
    S3Client,
    S3Request,
    S3Response,
    access_fault,
    s3_endpoint,
)

__all__ = [
    "S3",
    "S3_BUCKETS",
    "SIZE_SCHEMA",
    "BucketOwner",
    "ObjectSet",
    "S3Access",
    "access_of_record",
    "address_in_cloud",
    "bucket_name",
    "checked_access",
    "s3_endpoint",
    "size_problems",
]

#: Longest wait for a connection or for data, seconds.
TIMEOUT_S = 120.0
#: How often a bucket is emptied that gets further objects, and the pause before, seconds.
ATTEMPTS, PAUSE_S = 60, 1.0
_CONFLICT = 409
#: Name of the service in a record without Keystone, unless a task names another.
SERVICE = "s3"


def bucket_name(run: str, workload: int, number: int) -> str:
    """Return the name of a bucket of a workload: of small letters, digits and hyphens."""
    return f"{resource_names.of_contexts(run, workload)}-s3-{number}"


def access_of_record(deployment: Deployment, service: str, region: str) -> S3Access:
    """Return the access that a record without Keystone has: `http://ACCESS:SECRET@HOST:PORT`.

    `service`: its name in the record, "" for `SERVICE`. Raises DeploymentError.
    """
    name = service or SERVICE
    url = deployment.services.get(name)
    remedy = (
        f"write the address as services.{name} into the record, with ACCESS_KEY:SECRET_KEY@ before"
        " its host, / in a key as %2F, + as %2B"
    )
    if url is None:
        there = ", ".join(deployment.services) or "none"
        raise DeploymentError(
            f"deployment {deployment.name} has no service {name}, only {there}; {remedy}"
        )
    try:
        endpoint, access_key, secret_key = s3_endpoint(url)
    except ValueError as error:
        raise DeploymentError(f"service {name} of {deployment.name} {error}; {remedy}") from None
    if not access_key or not secret_key:
        raise DeploymentError(
            f"service {name} of {deployment.name} has no access key and secret key; {remedy}"
        )
    return checked_access(
        S3Access(
            endpoint=endpoint,
            region=region,
            verify=True,
            traced=True,
            projects={"": [(access_key, secret_key)]},
        )
    )


def address_in_cloud(cloud: Cloud) -> str:
    """Return the address of S3 in the catalogue: of type `s3`, else the host of `object-store`.

    Swift's s3api and RADOS gateways serve S3 at the root of that host. Raises DeploymentError if
    the catalogue has neither.
    """
    try:
        return s3_endpoint(cloud.address("s3"))[0]
    except DeploymentError as missing:
        try:
            parts = urlsplit(cloud.address("swift"))
        except DeploymentError:
            raise missing from None
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def checked_access(access: S3Access) -> S3Access:
    """Return `access`; raises DeploymentError if its keys or its region cannot be signed."""
    for keys in access.projects.values():
        for access_key, _ in keys:
            fault = access_fault(access_key, access.region)
            if fault:
                raise DeploymentError(f"S3 at {access.endpoint}: {fault}")
    return access


class BucketOwner:
    """Makes, fills and removes the buckets of the projects of an access. Thread-safe."""

    def __init__(self, access: S3Access) -> None:
        send = _RequestsSender(access.verify)
        self._clients = {
            project: S3Client(access.endpoint, access.keys_of(project)[0], send)
            for project in access.projects
        }

    def create(self, project: str, bucket: str) -> None:
        """Create a bucket, if an earlier attempt did not. Raises the errors of `S3Client`."""
        self._clients[project].create_bucket(bucket)

    def fill(self, project: str, objects: ObjectSet, numbers: range) -> None:
        """Upload some objects of a bucket, again if they are there. Raises as `create` does."""
        for number in numbers:
            body = GeneratedBody(objects.size(number), number)
            self._clients[project].put_object(objects.bucket, objects.key(number), body)

    def remove(self, project: str, bucket: str) -> None:
        """Delete a bucket with all objects and unfinished uploads; does nothing without it.

        Requests of iterations that are still in progress may add objects meanwhile. Raises
        ContextError if that does not end, and as `create` does.
        """
        client = self._clients[project]
        for _ in range(ATTEMPTS):
            client.empty_bucket(bucket)
            try:
                client.delete_bucket(bucket)
            except RequestFailed as error:
                if error.status != _CONFLICT:
                    raise
            else:
                return
            time.sleep(PAUSE_S)
        raise ContextError(
            f"bucket {bucket} is not empty after {ATTEMPTS} attempts; delete it by hand"
        )


class _RequestsSender:
    """Sends requests by the library `requests`, over connections that each thread keeps."""

    def __init__(self, verify: bool | str) -> None:
        self._verify = verify
        self._local = threading.local()

    def __call__(self, request: S3Request) -> S3Response:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = bounded_session(None)
        data: Any = request.body
        try:
            response = session.request(
                request.method,
                request.url,
                headers=dict(request.headers),
                data=data,
                timeout=TIMEOUT_S,
                # a signature is for one address
                allow_redirects=False,
                verify=self._verify,
            )
        except requests.RequestException as error:
            kind = TimeoutError if isinstance(error, requests.Timeout) else ConnectionError
            place = request.url.partition("?")[0]
            raise kind(f"{request.method} {place}: {root_cause(error)}") from error
        headers: Mapping[str, str] = {name.lower(): v for name, v in response.headers.items()}
        body = response.content
        return S3Response(response.status_code, response.reason, headers, body, len(body))
