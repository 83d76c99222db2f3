"""Signatures of requests to S3, held against those of botocore, and an example of AWS."""

from __future__ import annotations

import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.openstack.common.aws_signature import (
    EMPTY,
    UNSIGNED,
    SigningKey,
    encoded_path,
    encoded_query,
    signed_headers,
)

NOW = datetime.datetime(2026, 4, 1, 12, 30, 5, tzinfo=datetime.UTC)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20)
#: Parts of paths that normalisation and encoding often get wrong.
ODD = st.sampled_from(
    ["", "/", "//", ".", "..", "~", "%", "%2F", "+", " ", "&", "=", "?", "#", "ü"]
)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


def test_an_example_of_aws() -> None:
    """Sign "GET Object" of "Authenticating Requests: Using the Authorization Header"."""
    key = SigningKey(
        access_key="AKIAIOSFODNN7EXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    )

    found = signed_headers(
        key,
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        {"Range": "bytes=0-9"},
        digest=EMPTY,
        now=datetime.datetime(2013, 5, 24, tzinfo=datetime.UTC),
    )

    assert found["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )
    assert "wJalrXUtnFEMI" not in repr(key)


@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD"]),
    host=st.sampled_from(
        ["s3.example", "S3.Example:80", "10.0.0.1:9000", "[::1]:9000", "s3.example:443"]
    ),
    secure=st.booleans(),
    path=st.lists(st.one_of(TEXT, ODD), max_size=6).map("/".join),
    query=st.lists(st.tuples(st.one_of(TEXT, ODD), st.one_of(TEXT, ODD)), max_size=5),
    headers=st.dictionaries(NAMES.map("x-amz-meta-{}".format), VALUES, max_size=4),
    digest=st.sampled_from([EMPTY, UNSIGNED, "ab" * 32]),
    region=st.sampled_from(["us-east-1", "RegionOne"]),
    secret=st.text(min_size=1, max_size=40),
)
def test_signatures_are_botocores(  # noqa: PLR0913 - the parts of a request
    method: str,
    host: str,
    secure: bool,
    path: str,
    query: list[tuple[str, str]],
    headers: dict[str, str],
    digest: str,
    region: str,
    secret: str,
) -> None:
    auth: Any = pytest.importorskip("botocore.auth", reason="botocore is not installed")
    url = f"{'https' if secure else 'http'}://{host}{encoded_path('/' + path)}"
    if query:
        url += f"?{encoded_query(query)}"
    key = SigningKey(access_key="AKID", secret_key=secret, region=region)

    found = signed_headers(key, method, url, headers, digest=digest, now=NOW)

    assert found["Authorization"] == _botocores(auth, key, method, url, headers, digest)
    assert urlsplit(url).path == encoded_path("/" + path)


def _botocores(
    auth: Any, key: SigningKey, method: str, url: str, headers: dict[str, str], digest: str
) -> str:
    """The header that botocore adds, for the same time and digest of the body."""
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    class Signer(auth.S3SigV4Auth):  # type: ignore[misc] # it has no types
        def payload(self, request: Any) -> str:
            return digest

    request = AWSRequest(method=method, url=url, headers=headers)
    signer = Signer(Credentials("AKID", key.secret_key), "s3", key.region)
    stamp = NOW.strftime("%Y%m%dT%H%M%SZ")
    request.context["timestamp"] = stamp
    request.headers["X-Amz-Date"] = stamp
    request.headers["X-Amz-Content-SHA256"] = digest
    text = signer.string_to_sign(request, signer.canonical_request(request))
    names = signer.signed_headers(signer.headers_to_sign(request))
    return (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={names}, "
        f"Signature={signer.signature(text, request)}"
    )
