"""The head of a response: status, header lines, and how its body is delimited (RFC 9112)."""

from __future__ import annotations

import re
from functools import lru_cache

from osbench.worker.http.wire.wire_errors import BadResponse, DifferentLengths

#: Longest head of a response, bytes; as long as one line may be for http.client.
HEAD_LIMIT = 64 * 1024

#: Most header lines of a response, as for http.client.
LINES_LIMIT = 100

#: Lengths of bodies that are delimited in other ways than by a number.
CHUNKED = -1
UNTIL_CLOSE = -2

#: Status codes of responses that have no body, whatever their head says.
_WITHOUT_BODY = (204, 304)

#: Status code of a response with a part of a body, which cannot be decoded.
PARTIAL = 206

_BEGINNING = b"HTTP/1."
_VERSIONS = (b"HTTP/1.1 ", b"HTTP/1.0 ")
#: Fields that decide what becomes of the body and the connection.
_DECIDING_NAMES = frozenset(
    {b"connection", b"content-encoding", b"content-length", b"transfer-encoding"}
)
#: Names that need not be looked at character by character.
_COMMON = _DECIDING_NAMES | {
    b"cache-control",
    b"content-type",
    b"date",
    b"etag",
    b"keep-alive",
    b"last-modified",
    b"location",
    b"openstack-request-id",
    b"server",
    b"set-cookie",
    b"vary",
    b"x-openstack-request-id",
}
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_DIGITS_LIMIT = 18


class ResponseHead:
    """The validated head of a response; a head that can be read in two ways is refused.

    Such are heads with two lengths, or with Content-Length and Transfer-Encoding.
    """

    __slots__ = (
        "_decoded",
        "_lines",
        "coded",
        "codings",
        "keep",
        "length",
        "raw",
        "size",
        "status",
    )

    def __init__(self, raw: bytes) -> None:
        """Parse `raw`, the head with its empty line. Raises BadResponse if it is malformed."""
        lines = raw.split(b"\r\n")
        if not _tidy(raw, len(lines) - 1):
            raise BadResponse("a header line of the response is malformed")
        if len(lines) > LINES_LIMIT + 3:
            raise BadResponse(f"the response has more than {LINES_LIMIT} header lines")
        first = lines[0]
        version, code = first[:9], first[9:12]
        if (
            version not in _VERSIONS
            or not code.isdigit()
            or code < b"100"
            or first[12:13] not in (b"", b" ")
        ):
            raise BadResponse(f"not an HTTP/1.1 response: {shown_bytes(raw)}")
        self.raw = raw
        self.size = len(raw)
        self.status = int(code)
        self._decoded: tuple[tuple[str, str], ...] | None = None
        self._lines = lines
        # the names that say how long and how coded the body is, and whether the connection is kept
        framing: dict[bytes, bytes] = {}
        for line in lines[1:-2]:
            name, colon, value = line.partition(b":")
            name = name.lower()
            if not colon or (name not in _COMMON and not _TOKEN.fullmatch(name)):
                raise BadResponse("a header line of the response is malformed")
            if name in _DECIDING_NAMES:
                value = value.strip(b" \t").lower()
                framing[name] = b"%b,%b" % (framing[name], value) if name in framing else value
        connection = framing.get(b"connection", b"")
        #: Whether the connection may carry another request after the response.
        self.keep = version == _VERSIONS[0]
        if connection:
            tokens = [token.strip(b" \t") for token in connection.split(b",")]
            self.keep = b"close" not in tokens and (self.keep or b"keep-alive" in tokens)
        #: Bytes of the body, CHUNKED or UNTIL_CLOSE.
        self.length = _length(self.status, framing)
        if self.length == CHUNKED and version != _VERSIONS[0]:
            self.keep = False
        codings = framing.get(b"content-encoding", b"").decode("latin-1")
        #: Whether it names content codings.
        self.coded = bool(codings)
        #: Content codings of the body, whole, as their header has them; "" for none.
        self.codings = "" if self.status == PARTIAL else codings

    def next(self, raw: bytes) -> ResponseHead:
        """Return the head parsed from `raw`, the next response's on the same connection.

        Faster if names and their order are as in this head, and no changed line decides status,
        body or connection; else all of it is parsed. Raises BadResponse if `raw` is malformed.
        """
        lines = raw.split(b"\r\n")
        if len(lines) != len(self._lines) or not _tidy(raw, len(lines) - 1):
            return ResponseHead(raw)
        for line, earlier in zip(lines, self._lines, strict=True):
            if line != earlier:
                name, colon, _ = line.partition(b":")
                name = name.lower()
                if (
                    not colon
                    or name in _DECIDING_NAMES
                    or not earlier.lower().startswith(name + colon)
                    or (name not in _COMMON and not _TOKEN.fullmatch(name))
                ):
                    return ResponseHead(raw)
        head: ResponseHead = object.__new__(ResponseHead)
        head.raw = raw
        head.size = len(raw)
        head.status = self.status
        head.keep = self.keep
        head.length = self.length
        head.coded = self.coded
        head.codings = self.codings
        head._decoded = None
        head._lines = lines
        return head

    @property
    def reason(self) -> str:
        """Return the reason phrase, which follows the status code; may be empty."""
        return self._lines[0][13:].decode("latin-1")

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return the header fields in order: names in lower case, with their values."""
        if self._decoded is None:
            pairs = (line.split(b":", 1) for line in self._lines[1:-2])
            self._decoded = tuple(
                (name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1"))
                for name, value in pairs
            )
        return self._decoded

    @property
    def named_fields(self) -> list[tuple[str, str]]:
        """Return the header fields in order: names as they were sent, with their values."""
        return [_header_field(line) for line in self._lines[1:-2]]

    @property
    def version(self) -> int:
        """Return the HTTP version: 10 for HTTP/1.0, 11 for HTTP/1.1."""
        return 10 if self._lines[0].startswith(_VERSIONS[1]) else 11

    def values(self, name: str) -> list[str]:
        """Return the values of header `name` (in lower case), in order; empty if there is none."""
        return [value for known, value in self.fields if known == name]


def refuse_early(begun: bytes, seen: int) -> None:
    """Raise BadResponse if `begun`, the beginning of a head, can no longer become a valid head.

    It has to begin with HTTP/1., to be at most `HEAD_LIMIT` bytes long, and to have no LF without
    CR. The first `seen` bytes were checked for LF before.
    """
    if not begun.startswith(_BEGINNING[: len(begun)]):
        raise BadResponse(f"not an HTTP/1.1 response: {shown_bytes(begun)}")
    if len(begun) >= HEAD_LIMIT + 4:
        raise BadResponse(f"the head of the response is longer than {HEAD_LIMIT} bytes")
    if _BARE_LF.search(begun, seen):
        raise BadResponse("a header line of the response is malformed")


# most lines of a service's responses are the same each time
@lru_cache(1024)
def _header_field(line: bytes) -> tuple[str, str]:
    name, _, value = line.partition(b":")
    return name.decode("ascii"), value.strip(b" \t").decode("latin-1")


def _tidy(raw: bytes, ends: int) -> bool:
    """Return whether all line ends are CR LF, their number is `ends`, and there is no NUL."""
    return raw.count(b"\n") == ends == raw.count(b"\r") and b"\0" not in raw


def shown_bytes(data: bytes) -> str:
    """Return the `repr` of the first 20 bytes, without the b, for messages."""
    return repr(data[:20])[1:]


def _length(status: int, framing: dict[bytes, bytes]) -> int:
    lengths = framing.get(b"content-length")
    coding = framing.get(b"transfer-encoding")
    if coding is not None:
        if lengths is not None:
            raise BadResponse("the response has both Content-Length and Transfer-Encoding")
        if coding != b"chunked":
            raise BadResponse(f"transfer coding {shown_bytes(coding)} is not known")
    digits = b""
    if lengths is not None:
        different = {length.strip(b" \t") for length in lengths.split(b",")}
        if len(different) > 1:
            raise DifferentLengths("the response has several Content-Lengths that differ")
        digits = different.pop()
        if not digits.isdigit() or len(digits) > _DIGITS_LIMIT:
            raise BadResponse(f"Content-Length {shown_bytes(digits)} is not a length")
    if status in _WITHOUT_BODY or status < 200:
        return 0
    if coding is not None:
        return CHUNKED
    return int(digits) if digits else UNTIL_CLOSE
