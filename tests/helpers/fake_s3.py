"""A small S3 in a thread, answering as the API reference of S3 says; bodies may be of any length.

It checks that requests are signed, not by whom. Content is not kept, only its length: downloads are
zeros.
"""

from __future__ import annotations

import re
import uuid
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from helpers.json_server import LoopbackServer, QuietHandler, serving

_PIECE = 64 * 1024
_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/[\w-]+/s3/aws4_request, "
    r"SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}"
)


class FakeS3(LoopbackServer):
    """The server; a test looks into `buckets`."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        #: Sizes of objects by bucket and key.
        self.buckets: dict[str, dict[str, int]] = {}
        #: Parts by upload: bucket, key, and sizes by number.
        self.uploads: dict[str, tuple[str, str, dict[int, int]]] = {}
        #: Method, path with query, and access key of each request.
        self.seen: list[tuple[str, str, str]] = []
        #: Headers of each request, names in small letters.
        self.headers: list[dict[str, str]] = []
        #: Responses instead of the usual ones: regular expression of "METHOD /path?query", status,
        #: code of the error, times, header Retry-After.
        self.faults: list[list[Any]] = []
        #: Downloads and uploads that are cut off after so many bytes of the body; 0 for none.
        self.cut = 0
        #: Keys on a page, at most.
        self.page = 1000
        #: Deleted keys that are still listed, once each.
        self.late: set[str] = set()

    def fault(self, what: str) -> tuple[int, str, str] | None:
        for fault in self.faults:
            if fault[3] and re.search(fault[0], what):
                fault[3] -= 1
                return int(fault[1]), str(fault[2]), str(fault[4]) if len(fault) > 4 else ""
        return None


class _Handler(QuietHandler):
    server: FakeS3

    def _serve(self) -> None:
        server, split = self.server, urlsplit(self.path)
        headers = self.sent_headers()
        signed = _SIGNED.fullmatch(headers.get("authorization", ""))
        server.seen.append((self.command, self.path, signed[1] if signed else ""))
        server.headers.append(headers)
        self.query = dict(parse_qsl(split.query, keep_blank_values=True))
        bucket, _, key = unquote(split.path).removeprefix("/").partition("/")
        if not signed:
            self._drain()
            return self._error(403, "AccessDenied")
        fault = server.fault(f"{self.command} {self.path}")
        if fault:
            self._drain()
            return self._error(fault[0], fault[1], fault[2])
        return self._object(bucket, key) if key else self._bucket(bucket)

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def _bucket(self, bucket: str) -> None:  # noqa: PLR0911 - one for each operation
        buckets = self.server.buckets
        if self.command == "PUT":
            self._drain()
            if bucket in buckets:
                return self._error(409, "BucketAlreadyOwnedByYou")
            buckets[bucket] = {}
            return self._say(200)
        data = self.sent_body()
        if bucket not in buckets:
            return self._error(404, "NoSuchBucket")
        kept = buckets[bucket]
        if self.command == "POST":
            for key in re.findall("<Key>(.*?)</Key>", data.decode()):
                if key in self.server.late:
                    self.server.late.discard(key)
                else:
                    kept.pop(key, None)
            return self._say(200, "<DeleteResult></DeleteResult>")
        if self.command == "DELETE":
            if kept:
                return self._error(409, "BucketNotEmpty")
            del buckets[bucket]
            return self._say(204)
        if "uploads" in self.query:
            inner = "".join(
                f"<Upload><Key>{key}</Key><UploadId>{upload}</UploadId></Upload>"
                for upload, (_, key, _) in self.server.uploads.items()
            )
            return self._say(
                200, f"<ListMultipartUploadsResult>{inner}</ListMultipartUploadsResult>"
            )
        return self._list(kept)

    def _list(self, kept: dict[str, int]) -> None:
        after = self.query.get("continuation-token", "")
        most = min(int(self.query["max-keys"]), self.server.page)
        keys = sorted(key for key in kept if key > after)
        page = keys[:most]
        inner = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in page)
        more = len(keys) > most
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
        self._say(
            200,
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{inner}</ListBucketResult>",
        )

    def _object(self, bucket: str, key: str) -> None:  # noqa: PLR0911 - one for each operation
        kept = self.server.buckets.get(bucket)
        if self.command == "PUT":
            size = self._drain()
            if size is None:
                return None
            if kept is None:
                return self._error(404, "NoSuchBucket")
            if "uploadId" in self.query:
                number = int(self.query["partNumber"])
                self.server.uploads[self.query["uploadId"]][2][number] = size
                return self._say(200, ETag=f'"part-{number}"')
            kept[key] = size
            return self._say(200, ETag='"whole"')
        data = self.sent_body()
        if kept is None:
            return self._error(404, "NoSuchBucket")
        if "uploads" in self.query:
            upload = uuid.uuid4().hex
            self.server.uploads[upload] = (bucket, key, {})
            return self._say(200, f"<R><UploadId>{upload}</UploadId></R>")
        if "uploadId" in self.query:
            _, _, parts = self.server.uploads.pop(self.query["uploadId"])
            if self.command == "POST":
                named = re.findall('<ETag>"part-(\\d+)"</ETag>', data.decode())
                kept[key] = sum(parts[int(number)] for number in named)
            return self._say(200 if self.command == "POST" else 204, "<R></R>")
        if self.command == "DELETE":
            kept.pop(key, None)
            return self._say(204)
        if key not in kept:
            return self._error(404, "NoSuchKey")
        return self._content(kept[key])

    def _content(self, size: int) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked:
            size = min(int(asked[2]), size - 1) - int(asked[1]) + 1
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        left = min(size, self.server.cut or size)
        while left:
            count = min(left, _PIECE)
            self.wfile.write(bytes(count))
            left -= count
        if self.server.cut and self.server.cut < size:
            self.close_connection = True

    def _drain(self) -> int | None:
        """Read the body and return its size; None if the connection is cut off in it."""
        size = left = int(self.headers.get("Content-Length") or 0)
        if self.server.cut and self.server.cut < size:
            self.rfile.read(self.server.cut)
            self.close_connection = True
            return None
        while left:
            left -= len(self.rfile.read(min(left, _PIECE)))
        return size

    def _error(self, status: int, code: str, after: str = "") -> None:
        more = {"Retry-After": after} if after else {}
        self._say(
            status,
            f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>As the\n test says'
            "</Message></Error>",
            **more,
        )

    def _say(self, status: int, document: str = "", **headers: str) -> None:
        payload = document.encode()
        self.send_response(status)
        self.send_header("x-amz-request-id", "R1")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def fake_s3() -> AbstractContextManager[FakeS3]:
    """Serve a small S3 for as long as the block runs."""
    return serving(FakeS3())
