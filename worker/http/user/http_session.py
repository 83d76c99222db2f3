"""`self.http`: the HTTP session of a virtual user, whose requests are atomic actions."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, Self, TypeVar

from requests.cookies import RequestsCookieJar
from requests.utils import guess_filename
from urllib3.filepost import encode_multipart_formdata

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.entry_points import load_object
from osbench.common.plugin.scenario import Scenario
from osbench.common.plugin.signature import near
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.user.expectations import (
    Checks,
    check_content,
    check_status,
    expected_statuses,
    fits,
    outcomes,
)
from osbench.worker.http.user.http_response import HttpResponse, WholeResponse
from osbench.worker.http.user.request_base import (
    REAUTHENTICATION,
    RETRY,
    AskedRequest,
    Base,
    Token,
    default_name,
    request_limit_s,
)
from osbench.worker.http.wire.cookies import Cookies

#: Keyword arguments that are passed on to `requests.request`.
_OPTIONS = frozenset(
    {
        *("params", "headers", "json", "data", "files", "cookies"),
        *("timeout", "allow_redirects", "auth", "cert", "proxies", "hooks"),
    }
)
#: All that a request takes.
_ARGUMENTS = _OPTIONS | {"name", "expect", "check", "verify", "stream"}

R = TypeVar("R")


class UserHttp(Generic[R]):
    """The common part of the sessions of threads and of coroutines.

    Keyword arguments of all methods: `name` of the atomic action (by default the method and the
    path, with [id] for numbers, UUIDs, e-mail addresses and secrets); `expect`, a status code or
    several (less than 400); `check`, by which the iteration fails, and `verify`, which is only
    counted: expected values by subject, which is a JSONPath ($.a.b), "text" or "header NAME", or a
    function of the response; `stream=True` keeps nothing of the body, and with a mapping such as
    `{"events": "sse"}` its events are timed (docs/streams.md); and these of `requests.request`:
    params, headers, json, data, files, cookies, timeout, allow_redirects, auth, cert, proxies,
    hooks. TLS verification is set in the task (`http`).

    They return an `HttpResponse`, in coroutines an awaitable of it, and raise UnexpectedStatus,
    CheckFailed, TimeoutError, ConnectionError, ValueError, TypeError and, with a user's token,
    AuthenticationFailed.
    """

    def __init__(self, clients: HttpClients, base: Base) -> None:
        self._clients = clients
        #: Where paths lead, with what every request carries.
        self.base = base
        #: Headers of all requests of this user; values may be set at any time.
        self.headers: dict[str, str] = dict(base.headers)
        self._cookies = Cookies()
        self._scenario: Scenario

    @property
    def cookies(self) -> RequestsCookieJar:
        """Return the user's cookies, as a jar of `requests`; they are kept between iterations.

        Scenarios may change the jar.
        """
        return self._cookies.jar

    def serve(self, scenario: Scenario) -> Self:
        """Make further requests actions of the iteration `scenario`; return this session."""
        self._scenario = scenario
        return self

    def _call(
        self,
        method: str,
        path: str,
        name: str = "",
        expect: Any = None,
        check: Checks | None = None,
        verify: Checks | None = None,
        stream: bool | Mapping[str, Any] = False,
        **options: Any,
    ) -> AskedRequest:
        verb, base, context = method.upper(), self.base, self._scenario.context
        if not isinstance(path, str):
            raise TypeError(f"the path of a request must be text, got {path!r}")
        if not options.keys() <= _OPTIONS:
            unknown = min(options.keys() - _OPTIONS)
            raise TypeError(f"a request takes no argument {unknown!r}{near(unknown, _ARGUMENTS)}")
        expected_statuses(expect)
        url = base.join(path)
        if self.headers:
            options["headers"] = {**self.headers, **(options.get("headers") or {})}
        if base.options:
            options = {**base.options, **options}
        if options.get("files") is not None:
            attach(options)
        own = [f"X-Osbench-Iteration: {context.get('iteration', 0)}"]
        if context.get("timeout_s"):
            options["timeout"] = request_limit_s(context, options.get("timeout"))
        if isinstance(stream, Mapping):
            options["stream"] = stream
        return AskedRequest(
            name=name or default_name(verb, path),
            method=verb,
            url=url,
            own=own,
            options=options,
            expect=expect,
            check=check,
            verify=verify,
            keep_body=not stream,
        )

    def _trace(self, call: AskedRequest) -> None:
        """Add trace headers to the request `call`, in place, if the iteration is traced.

        Called once the action has begun, so that spans of services go below the span of the action.
        """
        if self._scenario._recorder.profiler is not None:
            call.own.extend(map(": ".join, self._scenario.trace_headers().items()))

    def _clients_of(self, call: AskedRequest) -> HttpClients:
        """Return the clients that make a request: of an edge if its response is read as a stream.

        Raises PluginError if the edge is missing.
        """
        if "stream" in call.options:
            made: HttpClients = load_object("stream", "clients")(self._clients, self._scenario)
            return made
        return self._clients

    def _token(self, call: AskedRequest) -> Token | None:
        """Return the user's token for a request to the service of `base`.

        Returns None for another origin, and if the workload names no service.
        """
        base = self.base
        return base.token if base.token is not None and base.is_below(call.url) else None

    def _judged(self, call: AskedRequest, answer: WholeResponse) -> HttpResponse:
        response = HttpResponse(answer)
        hidden = self._scenario.user.hidden.values()
        check_status(call.name, response, call.expect, hidden)
        if call.check is not None:
            check_content(call.name, response, call.check, hidden)
        if call.verify is not None:
            for what, problem in outcomes(response, call.verify):
                self._scenario.verify(f"{call.name}: {what}", not problem)
        return response

    def request(self, method: str, path: str, **wishes: Any) -> R:
        """Make a request as an atomic action; return the response, or an awaitable of it.

        Arguments and errors: see `UserHttp`.
        """
        raise NotImplementedError

    def get(self, path: str, **wishes: Any) -> R:
        """Make a GET request, as `request` does."""
        return self.request("GET", path, **wishes)

    def post(self, path: str, **wishes: Any) -> R:
        """Make a POST request, as `request` does."""
        return self.request("POST", path, **wishes)

    def put(self, path: str, **wishes: Any) -> R:
        """Make a PUT request, as `request` does."""
        return self.request("PUT", path, **wishes)

    def patch(self, path: str, **wishes: Any) -> R:
        """Make a PATCH request, as `request` does."""
        return self.request("PATCH", path, **wishes)

    def delete(self, path: str, **wishes: Any) -> R:
        """Make a DELETE request, as `request` does."""
        return self.request("DELETE", path, **wishes)

    def head(self, path: str, **wishes: Any) -> R:
        """Make a HEAD request, as `request` does."""
        return self.request("HEAD", path, **wishes)

    def options(self, path: str, **wishes: Any) -> R:
        """Make an OPTIONS request, as `request` does."""
        return self.request("OPTIONS", path, **wishes)


class HttpSession(UserHttp[HttpResponse]):
    """The HTTP session of a virtual user that is a thread; requests block the thread."""

    def request(self, method: str, path: str, **wishes: Any) -> HttpResponse:
        call = self._call(method, path, **wishes)
        with ActionTimer(self._scenario, call.name):
            self._trace(call)
            token = self._token(call)
            response = self._sent(call) if token is None else self._sent_with(token, call)
            return self._judged(call, response)

    def _sent(self, call: AskedRequest) -> WholeResponse:
        return self._clients_of(call).blocking_answer(call, self._scenario._recorder, self._cookies)

    def _sent_with(self, token: Token, call: AskedRequest) -> WholeResponse:
        """Send a request with the user's token and return the response.

        A missing or expired token is renewed first. After an unexpected 401 the token is renewed
        and the request sent again, once: its response is returned, whatever it is. Renewal and
        retry are actions within the request's action.
        """
        if token.is_over():
            self._renew(token, {})
        headers = token.headers()
        response = self._sent(with_headers(call, headers))
        if not _is_refused(call, response):
            return response
        self._renew(token, headers)
        with ActionTimer(self._scenario, RETRY):
            return self._sent(with_headers(call, token.headers()))

    def _renew(self, token: Token, refused: Mapping[str, str]) -> None:
        with ActionTimer(self._scenario, REAUTHENTICATION):
            token.renew(refused)


class LoopHttpSession(UserHttp[Awaitable[HttpResponse]]):
    """The HTTP session of a virtual user that is a coroutine; requests are awaited."""

    async def request(self, method: str, path: str, **wishes: Any) -> HttpResponse:
        call = self._call(method, path, **wishes)
        # thousands wait for their responses, each with all that its frames keep
        del wishes
        with ActionTimer(self._scenario, call.name):
            self._trace(call)
            token = self._token(call)
            sent = self._sent(call) if token is None else self._sent_with(token, call)
            return self._judged(call, await sent)

    def _sent(self, call: AskedRequest) -> Awaitable[WholeResponse]:
        return self._clients_of(call).answer(call, self._scenario._recorder, self._cookies)

    async def _sent_with(self, token: Token, call: AskedRequest) -> WholeResponse:
        """Send a request as `HttpSession._sent_with` does; the token is renewed in a thread."""
        if token.is_over():
            await self._renew(token, {})
        headers = token.headers()
        response = await self._sent(with_headers(call, headers))
        if not _is_refused(call, response):
            return response
        await self._renew(token, headers)
        with ActionTimer(self._scenario, RETRY):
            return await self._sent(with_headers(call, token.headers()))

    async def _renew(self, token: Token, refused: Mapping[str, str]) -> None:
        with ActionTimer(self._scenario, REAUTHENTICATION):
            # other users of the loop go on
            await self._scenario._recorder.run_blocking(partial(token.renew, refused))


def with_headers(call: AskedRequest, headers: Mapping[str, str]) -> AskedRequest:
    """Return a copy of a request with additional headers, for the host of its URL only."""
    return replace(call, own=[*call.own, *map(": ".join, headers.items())])


def _is_refused(call: AskedRequest, response: WholeResponse) -> bool:
    """Return whether a response is a 401 (Unauthorized) that the scenario does not expect."""
    return response.status == HTTPStatus.UNAUTHORIZED and not fits(response.status, call.expect)


def attach(options: dict[str, Any]) -> None:
    """Replace `files` and `data` in `options`, in place, by a multipart body and its Content-Type.

    A Content-Type of the caller stays. Reads open files. Raises TypeError if either is not a
    mapping, or a file is not bytes, a text or an open file.
    """
    files, form = options.pop("files"), options.pop("data", None) or {}
    if not isinstance(files, Mapping) or not isinstance(form, Mapping):
        raise TypeError("files, and data given with files, must be mappings of names")
    parts = [*_fields(form), *((name, _file(name, value)) for name, value in files.items())]
    body, content_type = encode_multipart_formdata(parts)
    headers = dict(options.get("headers") or {})
    if "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = content_type
    options.update(data=body, headers=headers)


def _fields(form: Mapping[str, Any]) -> Iterator[tuple[str, str | bytes]]:
    for name, value in form.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                yield name, one if isinstance(one, bytes) else str(one)


def _file(field: str, value: Any) -> tuple[Any, ...]:
    """Return a tuple for a multipart body: file name, content, and content type if `value` has one.

    `value` is the content, an open file (which is read), or a tuple of name, content and type. The
    name is by default the open file's, else `field`. Raises TypeError.
    """
    name, content, *kind = value if isinstance(value, tuple | list) else (None, value)
    if hasattr(content, "read"):
        name = name or guess_filename(content)  # type: ignore[no-untyped-call] # its stub
        content = content.read()
    if not isinstance(content, bytes | str):
        raise TypeError(
            f"the file {field!r} must be bytes, text or an open file, got {content!r:.80}"
        )
    return (name or field, content, *kind)
