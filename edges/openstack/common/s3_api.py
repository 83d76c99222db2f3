"""Requests of the S3 API that osbench makes, for contexts and for scenarios.

Paths are `/BUCKET/KEY`, which all servers take (path style).
<https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html>
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from osbench.common.files.foreign_json import read_json
from osbench.common.network.server_address import HTTP, parse_server_address
from osbench.common.ports import clock as time
from osbench.edges.openstack.common.aws_signature import (
    EMPTY,
    UNSIGNED,
    SigningKey,
    encoded_path,
    encoded_query,
    signed_headers,
)
from osbench.edges.openstack.common.object_body import ObjectBody
from osbench.edges.openstack.common.request_errors import RequestFailed, explanation
from osbench.edges.openstack.common.s3_xml import Element, read_xml, s3_error

#: Key of `made` and of contexts: the server and the access keys, as `S3Access.to_dict` gives them.
S3 = "s3"
#: Key of `made`: buckets with their objects, by project.
S3_BUCKETS = "s3_buckets"
#: Most objects that one request deletes, or that a page lists.
PAGE = 1000
#: Fewest bytes of a part of an upload, except the last, and most parts.
PART_BYTES, PARTS = 5 << 20, 10_000

#: How often objects are deleted again that are still listed, and the pause before, seconds.
LOOKS, PAUSE_S = 30, 1.0

_ACCESS_KEY = re.compile(r"[A-Za-z0-9_.+~@-]{1,256}")
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")
_NO_BUCKET = 404


@dataclass(frozen=True, kw_only=True)
class S3Access:
    """A server of S3, and the keys with which iterations ask it, one list per project."""

    endpoint: str
    region: str
    #: Whether TLS certificates are checked, or the file of their authorities.
    verify: bool | str
    #: Whether trace headers may be sent there.
    traced: bool
    #: Pairs of access key and secret key, of the users of each project, by project.
    projects: Mapping[str, Sequence[Sequence[str]]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dict of msgpack types, with secrets."""
        users = {
            project: [{"access_key": one[0], "secret_key": one[1]} for one in keys]
            for project, keys in self.projects.items()
        }
        return {
            "endpoint": self.endpoint,
            "region": self.region,
            "verify": self.verify,
            "traced": self.traced,
            "projects": users,
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> S3Access:
        """Return the access of a dict that `to_dict` made."""
        projects = {
            project: [(one["access_key"], one["secret_key"]) for one in keys]
            for project, keys in kept["projects"].items()
        }
        return cls(**{**kept, "projects": projects})

    def keys_of(self, project: str) -> list[SigningKey]:
        """Return the signing keys of the users of a project."""
        return [
            SigningKey(access_key=access, secret_key=secret, region=self.region)
            for access, secret in self.projects[project]
        ]


def access_fault(access_key: str, region: str) -> str:
    """Return why signatures cannot name this key or region; "" if they can. Shows neither."""
    if not _ACCESS_KEY.fullmatch(access_key):
        return "the access key is empty or has a character that no access key has"
    if not _REGION.fullmatch(region):
        return "a region has letters, digits and hyphens only, such as us-east-1"
    return ""


def s3_endpoint(url: str) -> tuple[str, str, str]:
    """Return the address of a server without user, and its user and password, decoded.

    Raises ValueError for an address that is not HTTP or has a query.
    """
    found = parse_server_address(url, HTTP)
    if found.query:
        raise ValueError("has a query, which the address of an S3 server does not have")
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path}".rstrip("/"), found.user, found.password


class S3Request(NamedTuple):
    """A signed request."""

    method: str
    url: str
    headers: Mapping[str, str]
    #: None without a body.
    body: bytes | ObjectBody | None
    #: Whether the body of a good response is read, not discarded.
    keep: bool


class S3Response(NamedTuple):
    """The response to an `S3Request`."""

    status: int
    reason: str
    #: By name in lower case.
    headers: Mapping[str, str]
    body: bytes
    #: Bytes of the body, kept or discarded.
    body_bytes: int


class S3Page(NamedTuple):
    """A page of a list."""

    keys: list[str]
    #: The next page; "" at the end.
    token: str


class S3Client:
    """Makes requests to a server of S3 with one key.

    All methods raise RequestFailed for an unexpected response, TimeoutError and ConnectionError.
    """

    def __init__(
        self,
        endpoint: str,
        key: SigningKey,
        send: Callable[[S3Request], S3Response],
        *,
        signs_bodies: bool = False,
    ) -> None:
        """`send` sends a request once. `signs_bodies`: digests of bodies are part of signatures.

        That reads each body twice.
        """
        self._endpoint = endpoint
        self._key = key
        self._send = send
        self._signs_bodies = signs_bodies

    def create_bucket(self, bucket: str) -> None:
        """Create a bucket; done also if an earlier attempt with this key has created it."""
        body = b""
        if self._key.region != "us-east-1":
            body = (
                '<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                f"<LocationConstraint>{self._key.region}</LocationConstraint>"
                "</CreateBucketConfiguration>"
            ).encode()
        response = self._request("PUT", bucket, body=body, expected=(200, 204, 409))
        if response.status == 409 and not s3_error(response.body).startswith(
            "BucketAlreadyOwnedByYou"
        ):
            raise self._failure("PUT", bucket, "", response)

    def delete_bucket(self, bucket: str) -> None:
        """Delete an empty bucket; done also if there is none."""
        self._request("DELETE", bucket, expected=(200, 204, 404))

    def empty_bucket(self, bucket: str) -> int:
        """Delete all objects and unfinished uploads of a bucket; return the number of objects.

        0 if there is no such bucket.
        """
        deleted, before, looks = 0, [""], 0
        while keys := self._first_keys(bucket):
            # a list may be late
            looks = looks + 1 if keys == before else 0
            if looks > LOOKS:
                raise RequestFailed(
                    f"DELETE {self._url(bucket)}: {len(keys)} objects or more are still listed"
                    f" after {LOOKS} deletions; delete the bucket by hand",
                    status=200,
                )
            if looks:
                time.sleep(PAUSE_S)
            self.delete_objects(bucket, keys)
            deleted += len(keys) if keys != before else 0
            before = keys
        for key, upload in self._uploads(bucket):
            self.abort_upload(bucket, key, upload)
        return deleted

    def put_object(self, bucket: str, key: str, body: bytes | ObjectBody) -> None:
        """Upload an object; replaces an object of the same key."""
        self._request("PUT", bucket, key, body=body, expected=(200, 201))

    def get_object(self, bucket: str, key: str) -> int:
        """Download an object and discard it; return its size in bytes."""
        return self._request("GET", bucket, key, expected=(200,), keep=False).body_bytes

    def get_range(self, bucket: str, key: str, first: int, last: int) -> int:
        """Download the bytes from `first` to `last` of an object; return their number."""
        headers = {"Range": f"bytes={first}-{last}"}
        response = self._request("GET", bucket, key, headers=headers, expected=(206,), keep=False)
        return response.body_bytes

    def delete_object(self, bucket: str, key: str) -> None:
        """Delete an object; S3 does not say whether there was one."""
        self._request("DELETE", bucket, key, expected=(200, 204))

    def delete_objects(self, bucket: str, keys: Sequence[str]) -> None:
        """Delete up to `PAGE` objects by one request."""
        inner = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
        body = f"<Delete><Quiet>true</Quiet>{inner}</Delete>".encode()
        digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        headers = {"Content-MD5": digest, "Content-Type": "application/xml"}
        response = self._request(
            "POST", bucket, query=[("delete", "")], body=body, headers=headers, expected=(200,)
        )
        for error in self._document("POST", bucket, "", response).all("Error"):
            raise RequestFailed(
                f"POST {self._url(bucket)}: {error.find('Code')}: {error.find('Message')}",
                status=response.status,
            )

    def list_page(self, bucket: str, token: str = "", most: int = PAGE) -> S3Page:
        """Return a page of a bucket's keys (ListObjectsV2); `token`: of the page before."""
        query = [("list-type", "2"), ("max-keys", str(most))]
        if token:
            query.append(("continuation-token", token))
        response = self._request("GET", bucket, query=query, expected=(200,))
        root = self._document("GET", bucket, "", response)
        goes_on = root.find("IsTruncated") == "true"
        following = root.find("NextContinuationToken") if goes_on else ""
        if goes_on and following in ("", token):
            raise RequestFailed(
                f"GET {self._url(bucket)}: the list is cut, and does not name its next page",
                status=response.status,
            )
        return S3Page([one.find("Key") for one in root.all("Contents")], following)

    def create_upload(self, bucket: str, key: str) -> str:
        """Begin an upload in parts; return its id."""
        response = self._request(
            "POST", bucket, key, query=[("uploads", "")], body=b"", expected=(200,)
        )
        return self._document("POST", bucket, key, response).find("UploadId")

    def upload_part(self, bucket: str, key: str, upload: str, number: int, body: ObjectBody) -> str:
        """Upload a part, numbered from 1; return its entity tag."""
        query = [("partNumber", str(number)), ("uploadId", upload)]
        response = self._request("PUT", bucket, key, query=query, body=body, expected=(200,))
        return response.headers.get("etag", "")

    def complete_upload(self, bucket: str, key: str, upload: str, tags: Sequence[str]) -> None:
        """Make the object of its parts; `tags`: their entity tags in order."""
        inner = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{inner}</CompleteMultipartUpload>".encode()
        query = [("uploadId", upload)]
        response = self._request("POST", bucket, key, query=query, body=body, expected=(200,))
        # an error may follow a status that was sent to keep the connection
        self._document("POST", bucket, key, response)

    def abort_upload(self, bucket: str, key: str, upload: str) -> None:
        """Delete the parts of an upload; done also if there is none."""
        query = [("uploadId", upload)]
        self._request("DELETE", bucket, key, query=query, expected=(200, 204, 404))

    def _first_keys(self, bucket: str) -> list[str]:
        """Return the first keys of a bucket; [] if it is empty, or there is none."""
        try:
            return self.list_page(bucket).keys
        except RequestFailed as error:
            if error.status != _NO_BUCKET:
                raise
            return []

    def _uploads(self, bucket: str) -> Iterator[tuple[str, str]]:
        """Yield key and id of each unfinished upload of a bucket."""
        markers: list[tuple[str, str]] = []
        while True:
            response = self._request(
                "GET", bucket, query=[("uploads", ""), *markers], expected=(200, 404)
            )
            if response.status == _NO_BUCKET:
                return
            root = self._document("GET", bucket, "", response)
            for one in root.all("Upload"):
                yield one.find("Key"), one.find("UploadId")
            following = [
                ("key-marker", root.find("NextKeyMarker")),
                ("upload-id-marker", root.find("NextUploadIdMarker")),
            ]
            if root.find("IsTruncated") != "true" or following == markers:
                return
            markers = following

    def _request(
        self,
        method: str,
        bucket: str,
        key: str = "",
        *,
        expected: tuple[int, ...],
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: bytes | ObjectBody | None = None,
        keep: bool = True,
    ) -> S3Response:
        url = self._url(bucket, key)
        if query:
            url += f"?{encoded_query(query)}"
        given = {"Accept-Encoding": "identity", **(headers or {})}
        signed = signed_headers(self._key, method, url, given, digest=self._digest(body))
        response = self._send(S3Request(method, url, signed, body, keep))
        if response.status not in expected:
            raise self._failure(method, bucket, key, response)
        return response

    def _digest(self, body: bytes | ObjectBody | None) -> str:
        if not body:
            return EMPTY
        if isinstance(body, bytes):
            return hashlib.sha256(body).hexdigest()
        return body.sha256() if self._signs_bodies else UNSIGNED

    def _url(self, bucket: str, key: str = "") -> str:
        path = f"/{bucket}/{key}" if key else f"/{bucket}"
        return self._endpoint + encoded_path(path)

    def _document(self, method: str, bucket: str, key: str, response: S3Response) -> Element:
        """Return the XML of a good response; raises RequestFailed if it is an error, or no XML."""
        try:
            root = read_xml(response.body)
        except ValueError as error:
            raise RequestFailed(
                f"{method} {self._url(bucket, key)} (HTTP {response.status}): the response is not"
                f" S3's: {error}; look at that server, or at a proxy between",
                status=response.status,
            ) from None
        if root.name == "Error":
            raise self._failure(method, bucket, key, response)
        return root

    def _failure(self, method: str, bucket: str, key: str, response: S3Response) -> RequestFailed:
        detail = s3_error(response.body)
        if not detail and response.body.startswith(b"{"):
            # of a proxy or a filter before S3
            try:
                detail = explanation(read_json(response.body))
            except ValueError:
                detail = ""
        reason = f" {response.reason}" if response.reason else ""
        text = f"{method} {self._url(bucket, key)}: {response.status}{reason}"
        return RequestFailed(
            f"{text}: {detail}" if detail else text,
            status=response.status,
            request_id=response.headers.get("x-amz-request-id", ""),
        )
