"""HTTP client over the library `requests`, for options that only it supports."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import requests
import urllib3.exceptions
from requests.cookies import merge_cookies

from osbench.common.network.bounded_adapter import CHUNK_BYTES, announced_bytes
from osbench.common.network.causes import root_cause, with_remedy
from osbench.common.network.origins import origin_changes, secret_headers
from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.worker.http import addresses
from osbench.worker.http.other_clients.other_exchange import OtherExchange
from osbench.worker.http.other_clients.turned_adapter import TurnedAdapter
from osbench.worker.http.outgoing_request import OF_BODY, keeps_body
from osbench.worker.http.wire.content_codings import UnkeptBody, decoded_body
from osbench.worker.http.wire.cookies import BrowserJar, Cookies
from osbench.worker.http.wire.raw_response import NOT_KEPT
from osbench.worker.http.wire.response_head import PARTIAL
from osbench.worker.http.wire.wire_errors import BadResponse, TooLongResponse

#: Options that requests wants as tuples; task files only have lists.
TUPLES = ("auth", "cert", "timeout")

#: Attribute of a response: why its body cannot be decoded.
_FAULT = "_osbench_fault"


class RequestsClient:
    """HTTP client with a session of `requests` per thread; keeps connections, no cookies.

    Cookies of virtual users are given with each request.
    """

    def __init__(self, of_run: Sequence[str], bound: ResponseBound = USUAL) -> None:
        """`of_run` are header lines of every request, sent to the host of its URL only.

        `bound` limits bodies that are kept; discarded bodies are checked up to it.
        """
        self._of_run = of_run
        self._bound = bound
        self._local = threading.local()

    def status(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        exchange: OtherExchange | None = None,
    ) -> int:
        """Make a request, follow its redirects, read the last response and return its status code.

        `options` are the keyword arguments of `requests.request`, and mean the same. `own`: header
        lines for the host of `url` only. `exchange` notes if a body is false, that is cut short or
        not in its content codings.

        Raises TimeoutError and ConnectionError for network errors and too many redirects,
        ValueError for invalid headers, and other exceptions of requests for wrong arguments.
        """
        exchange = exchange or OtherExchange()
        response = self._answered(
            method, url, own, options, None, keep_body=False, exchange=exchange
        )
        return response.status

    def answer(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        cookies: Cookies,
        *,
        keep_body: bool,
        exchange: OtherExchange | None = None,
    ) -> ForeignResponse:
        """Make a request, follow its redirects and return the last response.

        Its body is kept if `keep_body`. The `cookies` are sent, and get the cookies that responses
        set. Other arguments and errors: see `status`. Raises TooLongResponse, too.
        """
        exchange = exchange or OtherExchange()
        return self._answered(
            method, url, own, options, cookies, keep_body=keep_body, exchange=exchange
        )

    def _answered(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        cookies: Cookies | None,
        *,
        keep_body: bool,
        exchange: OtherExchange,
    ) -> ForeignResponse:
        more: dict[str, Any] = {
            name: tuple(value) if name in TUPLES and isinstance(value, list) else value
            for name, value in options.items()
        }
        given = more.pop("headers", None) or {}
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise ValueError(f"headers must be a mapping of names to values, got {given!r}")
        session: _Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._new_session()
        read = partial(_read_response, keep_body=keep_body, bound=self._bound, exchange=exchange)
        session.hooks["response"] = [read]
        # each user has its own jar; threads share the session's connections alone
        session.cookies = cookies.jar if cookies is not None else BrowserJar()
        ours = dict(line.split(": ", 1) for line in (*self._of_run, *own))
        session.private = frozenset(name.lower() for name in ours)
        try:
            # `_read_response` reads it
            more["stream"] = True
            with session.request(method, url, headers={**ours, **given}, **more) as response:
                return ForeignResponse(response, kept=keep_body)
        except TooLongResponse as error:
            place = f"{method.upper()} {addresses.shown_url(url)}"
            raise TooLongResponse(f"{place}: {error}") from error
        except requests.Timeout as error:
            raise TimeoutError(_message(method, url, options, error)) from error
        except requests.ConnectionError as error:
            raise ConnectionError(_message(method, url, options, error)) from error
        except requests.TooManyRedirects as error:
            place = f"{method.upper()} {addresses.shown_url(url)}"
            raise ConnectionError(
                f"{place}: more than {session.max_redirects} redirects; correct the service, or "
                "set allow_redirects: false"
            ) from error

    def _new_session(self) -> _Session:
        return _Session()


class ForeignResponse:
    """The last response of the library `requests`, with the same interface as `RawResponse`.

    Header fields of one name are joined.
    """

    def __init__(self, response: requests.Response, *, kept: bool) -> None:
        self.status = response.status_code
        self.fields = tuple((name.lower(), value) for name, value in response.headers.items())
        self.url = str(response.url)
        self._fault: BadResponse | None = vars(response).get(_FAULT)
        self._body: bytes | None = response.content if kept else None

    def content(self) -> bytes:
        """Return the body without its content codings.

        Raises ValueError if it was not kept, and BadResponse if it does not match its codings.
        """
        if self._body is None:
            raise ValueError(NOT_KEPT)
        if self._fault is not None:
            raise self._fault
        return self._body


class _Session(requests.Session):
    """A session that drops osbench's headers and secrets on redirects to other hosts."""

    #: Names, in lower case, of headers for the first host only.
    private: frozenset[str] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, TurnedAdapter())

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        prepared = super().prepare_request(request)
        if "cookie" not in {name.lower() for name in request.headers}:
            # requests has merged the cookies into a jar with the rules of Python
            merge: Any = merge_cookies
            jar = merge(self.cookies.copy(), request.cookies or {})
            prepared.headers.pop("Cookie", None)
            prepared.prepare_cookies(jar)
        return prepared

    def rebuild_method(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        verb = str(prepared_request.method)
        if not keeps_body(response.status_code, verb):
            prepared_request.method = "HEAD" if verb == "HEAD" else "GET"

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        super().rebuild_auth(prepared_request, response)  # type: ignore[no-untyped-call] # its stub
        headers = prepared_request.headers
        before = response.request
        if keeps_body(response.status_code, str(before.method)):
            # requests has dropped it, for it keeps bodies after 307 and 308 alone
            prepared_request.body = before.body
            kept = {name: v for name, v in before.headers.items() if name.lower() in OF_BODY}
            headers.update(kept)
        there, here = str(prepared_request.url), str(response.url)
        if addresses.host(there) != addresses.host(here):
            for name in self.private & {n.lower() for n in headers}:
                del headers[name]
        if origin_changes(here, there):
            for name in secret_headers(list(headers)):
                del headers[name]


def _read_response(
    response: requests.Response,
    keep_body: bool,
    bound: ResponseBound,
    exchange: OtherExchange,
    **_: object,
) -> None:
    """Read a response to its end, also a redirect, and check that its body is complete.

    A response hook of the session. urllib3 ignores that a coded body is cut short, and would unpack
    into memory a body that is not kept. The body is set as the response's content: decoded, as it
    is if that fails, b"" if not kept; `exchange` notes a false body. Raises TooLongResponse for a
    kept body, and Timeout and ConnectionError of `requests`.
    """
    codings = response.headers.get("content-encoding", "")
    body: list[bytes] | UnkeptBody = [] if keep_body else UnkeptBody(codings, bound)
    announced, size = announced_bytes(response), 0
    if keep_body and announced > bound.most_bytes:
        response.close()
        raise TooLongResponse(bound.message(announced))
    try:
        while piece := response.raw.read(CHUNK_BYTES, decode_content=False):
            body.append(piece)
            size += len(piece)
            if keep_body and size > bound.most_bytes:
                response.close()
                raise TooLongResponse(bound.message())
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.Timeout(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error
    content, false = b"", False
    if isinstance(body, UnkeptBody):
        false = body.is_false()
    else:
        content = raw = b"".join(body)
        try:
            content = decoded_body(raw, codings, bound) if raw else raw
        except TooLongResponse:
            raise
        except BadResponse as error:
            false = True
            vars(response)[_FAULT] = error
    exchange.false_body |= false and response.status_code != PARTIAL
    response._content, response._content_consumed = content, True  # type: ignore[attr-defined]


def _message(method: str, url: str, options: Mapping[str, Any], error: BaseException) -> str:
    said = root_cause(error, options.get("proxies"))
    return f"{method.upper()} {addresses.shown_url(url)}: {with_remedy(said)}"
