"""Responses as `requests` returns them, made from the responses of osbench's client."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Any

from requests.cookies import RequestsCookieJar, extract_cookies_to_jar
from requests.models import Response
from requests.utils import get_encoding_from_headers
from urllib3 import HTTPHeaderDict, HTTPResponse

from osbench.common.network.bounded_adapter import read_bounded
from osbench.common.network.response_bound import UNBOUNDED
from osbench.edges.openstack.worker.session_request import DescribedRequest, Fields, headers_of
from osbench.edges.openstack.worker.session_site import SessionSite
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.wire.raw_response import RawResponse


class SessionResponse(Response):
    """A response of the library `requests`, made of a response of osbench's client.

    Rarely used parts, such as cookies, are made when read.
    """

    def __init__(self, request: DescribedRequest, response: RawResponse, site: SessionSite) -> None:
        """Raises exceptions of `requests` for a body too long once decoded, or not in its codings.

        The body of a redirect without a size limit is not decoded here.
        """
        self._next = None
        self.history = []
        self.request = request
        self.connection = site.adapter
        self.url = str(request.url)
        self.status_code = response.status
        self.reason = response.reason.strip()
        self._lines = response.named_fields
        self._version = response.version
        fields = _fields(self._lines)
        self.headers = headers_of(fields)
        content_type = fields.get("content-type")
        self.encoding = _encoding(content_type[1]) if content_type is not None else None
        phases = response.phases
        self.elapsed = timedelta(microseconds=(phases.first_byte_ns - phases.begun_ns) / 1000)
        self._content = response.body()
        self._content_consumed = True
        if "content-encoding" in fields and self._content:
            # by urllib3, so that what it takes and what it refuses is the same
            self.raw = self._described(self._content)
            self._content = False  # type: ignore[assignment] # its stub
            self._content_consumed = False
            # requests itself reads what redirects, and passes over what cannot be decoded
            if response.status not in REDIRECTS or site.bound is not UNBOUNDED:
                read_bounded(self, site.bound)

    @cached_property
    def cookies(self) -> RequestsCookieJar:  # type: ignore[override] # it can be set
        """Return the cookies that this response sets, made at the first access."""
        jar = RequestsCookieJar()
        extract_cookies_to_jar(jar, self.request, self.raw)  # type: ignore[no-untyped-call] # its stub
        return jar

    @cached_property
    def raw(self) -> HTTPResponse:  # type: ignore[override] # it can be set
        """Return the response as urllib3's class, made at the first access; its body is read."""
        return self._described(b"")

    def _described(self, body: bytes) -> HTTPResponse:
        headers = HTTPHeaderDict()
        for name, value in self._lines:
            headers.add(name, value)
        original: Any = _Original(headers)
        return HTTPResponse(
            body=BytesIO(body),
            headers=headers,
            status=self.status_code,
            version=self._version,
            reason=self.reason,
            preload_content=False,
            decode_content=False,
            original_response=original,
            request_method=self.request.method,
        )


class _Original:
    """The part of http.client's response that `requests` uses: the lines of cookies."""

    def __init__(self, headers: HTTPHeaderDict) -> None:
        self.msg = self
        self._headers = headers

    def get_all(self, name: str, default: Any = None) -> Any:
        return self._headers.getlist(name) or default

    def isclosed(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _fields(pairs: list[tuple[str, str]]) -> Fields:
    """Return fields by name in lower case; values of one name are joined by ", "."""
    fields = {name.lower(): (name, value) for name, value in pairs}
    if len(fields) < len(pairs):
        fields = {}
        for name, value in pairs:
            key = name.lower()
            first = fields.get(key)
            fields[key] = (name, value) if first is None else (first[0], f"{first[1]}, {value}")
    return fields


@lru_cache(256)
def _encoding(content_type: str) -> str | None:
    return get_encoding_from_headers(headers_of({"content-type": ("Content-Type", content_type)}))
