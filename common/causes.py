"""The root cause of a network error, worded the same for similar failures."""

from __future__ import annotations

from collections.abc import Iterator


def root_cause(error: BaseException) -> str:
    """The text of the innermost cause, after the proxy if it is one of a proxy.

    The outer exceptions of requests and keystoneauth1 contain object addresses, request ids and
    whole URLs, so similar failures would not be grouped. What was raised `from None` has no cause.
    """
    *_, inner = _chain(error)
    return of_proxy(proxy_of(error), str(inner) or type(inner).__name__)


def proxy_of(error: BaseException) -> str:
    """The address of the proxy that a request of requests failed at; "" if it was not a proxy."""
    chain = list(_chain(error))
    if not any(type(one).__name__ == "ProxyError" for one in chain):
        return ""
    # urllib3's MaxRetryError has the pool, and that the proxy
    proxies = (getattr(getattr(one, "pool", None), "proxy", None) for one in chain)
    found = next(filter(None, proxies), None)
    if found is None:
        return "of the environment"
    port = f":{found.port}" if found.port else ""
    return f"{found.scheme}://{found.host}{port}"


def of_proxy(proxy: str, text: str) -> str:
    """A cause in words; `proxy` is the address of the proxy at fault, or ""."""
    return f"the proxy {proxy} does not serve: {text}" if proxy else text


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, innermost last."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
