"""Reduces a network error to the text of its root cause, equal for similar failures."""

from __future__ import annotations

from collections.abc import Mapping

from requests.exceptions import ProxyError

from osbench.common.network.environment_proxy import no_connection, proxy_of


def root_cause(error: BaseException, proxies: Mapping[str, str] | None = None) -> str:
    """Return the text of the innermost cause of `error`; if a proxy failed, the text names it.

    Outer exceptions of requests and keystoneauth1 have object addresses, request ids and URLs, so
    similar failures would not be grouped. An exception raised `from None` has no cause. `proxies`:
    proxies by scheme that the request was given in addition to the environment's.
    """
    proxy = ""
    while True:
        if isinstance(error, ProxyError) and error.request is not None:
            proxy = proxy_of(str(error.request.url), proxies)
        inner = _cause(error)
        if inner is None:
            break
        error = inner
    text = str(error) or type(error).__name__
    return no_connection(proxy, text) if proxy else text


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
