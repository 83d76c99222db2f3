"""The root cause of a network error, worded the same for similar failures."""

from __future__ import annotations

from collections.abc import Mapping

from requests.exceptions import ProxyError

from osbench.common.network.environment_proxy import no_connection, proxy_of


def root_cause(error: BaseException, proxies: Mapping[str, str] | None = None) -> str:
    """The text of the innermost cause, with the proxy if that is what failed.

    The outer exceptions of requests and keystoneauth1 contain object addresses, request ids and
    whole URLs, so similar failures would not be grouped. What was raised `from None` has no cause.
    `proxies` are those that the request was given beside the environment's.
    """
    proxy = failed_proxy(error, proxies)
    while (inner := _cause(error)) is not None:
        error = inner
    text = str(error) or type(error).__name__
    return no_connection(proxy, text) if proxy else text


def failed_proxy(error: BaseException, proxies: Mapping[str, str] | None = None) -> str:
    """URL of the proxy that took no connection; "" if the error is of something else.

    `proxies` are those that the request was given beside the environment's.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ProxyError) and cause.request is not None:
            return proxy_of(str(cause.request.url), proxies)
        cause = _cause(cause)
    return ""


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
