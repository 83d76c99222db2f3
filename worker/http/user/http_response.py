"""An HTTP response, as a scenario sees it."""

from __future__ import annotations

import codecs
import json
from email.message import Message
from typing import TYPE_CHECKING, Any, Protocol

from osbench.worker.http import addresses
from osbench.worker.http.wire.wire_errors import BadResponse

if TYPE_CHECKING:
    from requests.structures import CaseInsensitiveDict

#: Longest Content-Type that is taken apart: the time for it grows with its square.
_TYPE_CHARS = 1000
#: Codecs for names of hosts: the time for a body would grow with its square, too.
_OF_NAMES = frozenset({"punycode", "idna"})

#: Nothing was parsed yet.
_UNREAD: Any = object()


class WholeResponse(Protocol):
    """The interface that responses of all clients have: status, URL, header fields and body."""

    @property
    def status(self) -> int:
        """Return the status code."""

    @property
    def url(self) -> str:
        """Return the URL that the response came from, after redirects."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return the header fields in order: names in lower case, values; names may repeat."""

    def content(self) -> bytes:
        """Return the body without its content codings.

        Raises BadResponse if it does not match its codings, and ValueError if it was not kept.
        """


class HttpResponse:
    """A response that a method of `self.http` returns to a scenario; redirects are done."""

    def __init__(self, response: WholeResponse) -> None:
        self._answer = response
        self._body: bytes | None = None
        self._document = _UNREAD

    @property
    def status(self) -> int:
        """Return the status code."""
        return self._answer.status

    @property
    def url(self) -> str:
        """Return the URL that the response came from, after redirects."""
        return self._answer.url

    @property
    def headers(self) -> CaseInsensitiveDict[str]:
        """Return header values by name in any case; values of one name are joined by ", "."""
        # the coordinator uses this module, and makes no request
        from requests.structures import CaseInsensitiveDict  # noqa: PLC0415 - see above

        found: CaseInsensitiveDict[str] = CaseInsensitiveDict()
        for name, value in self._answer.fields:
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    @property
    def body(self) -> bytes:
        """Return the body without its content codings.

        Raises ValueError if it was not kept (`stream=True`), and ConnectionError if it is cut short
        or not in its content codings.
        """
        if self._body is None:
            try:
                self._body = self._answer.content()
            except BadResponse as error:
                said = f"{addresses.shown_url(self.url)}: {error}{error.remedy}"
                raise BadResponse(said) from error
        return self._body

    @property
    def text(self) -> str:
        """Return the body as text, by the response's charset, else UTF-8.

        UTF-8 also for an unknown charset. Bytes that are not valid become U+FFFD. Raises ValueError
        if the body was not kept, and ConnectionError if it cannot be decoded.
        """
        content_type = self.headers.get("content-type", "")
        parsed = Message()
        if len(content_type) <= _TYPE_CHARS:
            parsed["content-type"] = content_type
        charset, body = parsed.get_content_charset() or "utf-8", self.body
        try:
            if codecs.lookup(charset).name in _OF_NAMES:
                charset = "utf-8"
            return body.decode(charset, "replace")
        except (LookupError, ValueError):
            # no charset that is known, or a codec that is for something else
            return body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the parsed JSON of the body: parsed once, then the same object each time.

        Raises ValueError if the body is not JSON or was not kept, and ConnectionError if it cannot
        be decoded.
        """
        if self._document is _UNREAD:
            self._document = json.loads(self.body)
        return self._document

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status}>"
