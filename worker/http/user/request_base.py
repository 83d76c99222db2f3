"""Requests of virtual users: where they go and what each carries, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from osbench.worker.http.user.expectations import Checks

#: Seconds that a request may continue after its iteration's timeout, so that the iteration is
#: counted as a timeout, not as a failure, and its thread is free soon after.
GRACE_S = 0.2


def request_limit_s(context: Mapping[str, Any], given: Any = None) -> Any:
    """Timeout of a request in seconds: `given`, but not more than the iteration's timeout.

    None where neither sets one. A value that is not a number, such as a pair, is kept.
    """
    limit_s = context.get("timeout_s")
    if limit_s and (given is None or (isinstance(given, int | float) and given > limit_s)):
        return limit_s + GRACE_S
    return given


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedRequest:
    """What is to be sent, and what is expected of the answer."""

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
    """A user's token for a service."""

    def headers(self) -> Mapping[str, str]:
        """The headers with it; they may request one if there is none."""

    def is_over(self) -> bool:
        """Whether a new one is needed, as there is none or it has expired."""

    def renew(self, refused: Mapping[str, str]) -> None:
        """Request a new one, unless there is a newer one than that of the headers `refused`.

        Raises AuthenticationFailed, ConnectionError, TimeoutError.
        """


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all requests of one virtual user have in common."""

    #: Comes before paths; "" where only whole URLs are requested.
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Keyword arguments of `requests.request`: timeout (seconds), verify, cert.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The user's token for requests below `url`; None without a service.
    token: Token | None = None

    def join(self, path: str) -> str:
        """The URL of a path; a whole URL stays. Raises ValueError where there is no base."""
        if path.startswith(("http://", "https://")):
            return path
        if not self.url:
            raise ValueError(
                f"{path!r} is not an absolute URL, and there is no base: set http: {{base: ...}} "
                "in the workload"
            )
        if not path or path[0] == "?":
            return self.url + path
        return f"{self.url.rstrip('/')}/{path.lstrip('/')}"

    def is_below(self, url: str) -> bool:
        """Whether a URL goes to the service that the token is for."""
        there, here = urlsplit(url), urlsplit(self.url)
        return (there.scheme, there.netloc) == (here.scheme, here.netloc)


#: The URL of a service, headers of requests to it, and the token of a virtual user, by its number.
Reach = Callable[[int], tuple[str, Mapping[str, str], Token]]


class Bases:
    """Makes the base of each virtual user of a workload."""

    def __init__(self, wish: Mapping[str, Any], reach: Reach | None = None) -> None:
        """`wish` is the task's key `http`; `reach` is given where that names a service."""
        self._reach = reach
        self._plain = Base(
            url=wish.get("base", ""),
            headers=wish.get("headers", {}),
            options={k: wish[k] for k in ("timeout", "verify", "cert") if k in wish},
        )

    def of(self, number: int) -> Base:
        """The base of a virtual user, by its number.

        May request a token. Raises DeploymentError, ConnectionError, TimeoutError.
        """
        plain = self._plain
        if self._reach is None:
            return plain
        url, headers, token = self._reach(number)
        return Base(
            url=url, headers={**headers, **plain.headers}, options=plain.options, token=token
        )
