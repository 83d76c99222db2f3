"""Settings and arguments of a virtual user's requests: base URL, headers, timeouts, token."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from osbench.common.network.origins import is_http, origin
from osbench.common.secrets.url_masking import mask_url

if TYPE_CHECKING:
    from osbench.worker.http.user.expectations import Checks

#: Seconds that a request may continue after its iteration's timeout, so that the iteration is
#: counted as a timeout, not as a failure, and its thread is free soon after.
GRACE_S = 0.2
#: Parts of a path that are of a single object or person: numbers, hex, UUIDs, e-mail addresses.
_SINGLE = re.compile(
    r"\d+|(?=[0-9a-f]*\d)[0-9a-f]{8,64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|.*(?:@|%40).*",
    re.IGNORECASE,
)


def request_limit_s(context: Mapping[str, Any], given: Any = None) -> Any:
    """Return a request's timeout in seconds: `given`, but not more than the iteration's timeout.

    If the iteration's timeout is the limit, GRACE_S is added to it. None if neither is set. A value
    that is not a number, such as a pair, is returned as it is.
    """
    limit_s = context.get("timeout_s")
    if limit_s and (given is None or (isinstance(given, int | float) and given > limit_s)):
        return limit_s + GRACE_S
    return given


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedRequest:
    """A request that a scenario asked for, and its expectations on the response; not sent yet."""

    name: str
    method: str
    url: str
    #: Header lines for the host of `url` only.
    own: list[str]
    #: Keyword arguments of `requests.request`.
    options: Mapping[str, Any]
    expect: Any
    check: Checks | None
    verify: Checks | None
    keep_body: bool


#: Names of actions for additional requests, within the action of the original request.
REAUTHENTICATION, RETRY = "re-authentication", "retry"


class Token(Protocol):
    """A virtual user's authentication token for a service; renewed as needed."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers that carry the token; may request a token if there is none."""

    def is_over(self) -> bool:
        """Return whether a new token is needed: there is none, or it has expired."""

    def renew(self, refused: Mapping[str, str]) -> None:
        """Request a new token, unless there is a newer one than the token in the headers `refused`.

        Raises AuthenticationFailed, ConnectionError, TimeoutError.
        """


@dataclass(frozen=True, kw_only=True)
class Base:
    """Settings that all requests of one virtual user have in common, from the task."""

    #: Comes before paths; "" if only absolute URLs are requested.
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Keyword arguments of `requests.request`: timeout (seconds), verify, cert.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The user's token for requests below `url`; None without a service.
    token: Token | None = None

    def join(self, path: str) -> str:
        """Return the URL of a path below the base; an absolute URL is returned as it is.

        A path that is "" or begins with "?" is appended without a slash; of `//x` both slashes are
        kept. Raises ValueError for a path if there is no base.
        """
        if is_http(path):
            return path
        if not self.url:
            raise ValueError(
                f"{path!r} is a path without a base; set http: {{base: http://HOST}} in the "
                "workload"
            )
        if not path or path[0] == "?":
            return self.url + path
        return f"{self.url.rstrip('/')}/{path.removeprefix('/')}"

    def is_below(self, url: str) -> bool:
        """Return whether requests to a URL carry the token: its origin is the base's."""
        try:
            return origin(url) == origin(self.url)
        except ValueError:
            return False


#: The URL of a service, headers of requests to it, and the token of a virtual user, by its number.
Reach = Callable[[int], tuple[str, Mapping[str, str], Token]]


class Bases:
    """Makes the `Base`, the request settings, of each virtual user of a workload."""

    def __init__(self, wish: Mapping[str, Any], reach: Reach | None = None) -> None:
        """Read `wish`, the task's key `http`.

        `reach` returns service URL, headers and token of a user by its number; None unless `http`
        names a service.
        """
        self._reach = reach
        self._plain = Base(
            url=wish.get("base", ""),
            headers=wish.get("headers", {}),
            options={k: wish[k] for k in ("timeout", "verify", "cert") if k in wish},
        )

    def of(self, number: int) -> Base:
        """Return the settings of virtual user `number`: URL prefix, headers, options and token.

        Equal for all users if `http` names no service. If it does, this may request a token, and
        headers of the workload win over headers of the service. Raises DeploymentError,
        AuthenticationFailed, ConnectionError, TimeoutError.
        """
        plain = self._plain
        if self._reach is None:
            return plain
        url, headers, token = self._reach(number)
        return Base(
            url=url, headers={**headers, **plain.headers}, options=plain.options, token=token
        )


def default_name(method: str, path: str) -> str:
    """Return the default name of a request's action, such as "GET /servers/[id]".

    Method and path, without host and query. [id] replaces parts of the path that are numbers, hex,
    UUIDs, e-mail addresses or secrets; a placeholder of a task is kept.
    """
    return f"{method} {_path_name(path)}"


@functools.lru_cache(4096)
def _path_name(path: str) -> str:
    plain = urlsplit(path).path if is_http(path) else path.partition("?")[0]
    parts = plain.split("/")
    masked = mask_url(plain).split("/")
    shown = [
        "[id]" if "{" not in part and (_SINGLE.fullmatch(part) or part != without) else part
        for part, without in zip(parts, masked, strict=True)
    ]
    return "/".join(shown) or "/"
