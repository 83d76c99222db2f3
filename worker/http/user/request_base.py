"""Where the requests of virtual users go, and what each carries: from the task's key `http`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

#: Headers with the user's token.
Token = Callable[[], Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all requests of one virtual user have in common."""

    #: Comes before paths; "" where only whole URLs are requested.
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Keyword arguments of `requests.request`: timeout (seconds), verify, cert.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Headers with the user's token for requests below `url`; None without a service.
    token: Token | None = None

    def join(self, path: str) -> str:
        """The URL of a path; a whole URL stays. Raises ValueError where there is no base."""
        if path.startswith(("http://", "https://")):
            return path
        if not self.url:
            raise ValueError(
                f"{path!r} is no whole URL, and there is no base: set http: {{base: ...}} "
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
