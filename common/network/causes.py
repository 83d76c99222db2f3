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


_OTHER_NAME = "use a name or address that the certificate has"
_AUTHORITY = "name the file of its authority: verify: FILE, --ca FILE"
#: Remedies for a refused certificate, by the words of OpenSSL and libcurl; the first match counts.
_REMEDIES = (
    ("certificate has expired", "renew it, or set the clock of the worker"),
    ("not yet valid", "set the clock of the worker"),
    ("hostname mismatch", _OTHER_NAME),
    ("ip address mismatch", _OTHER_NAME),
    ("no alternative certificate subject name", _OTHER_NAME),
    ("certificate verify failed", _AUTHORITY),
    ("certificate openssl verify result", _AUTHORITY),
)


def with_remedy(text: str) -> str:
    """Return an error's text, with a remedy if it is about the certificate of a service."""
    lower = text.lower()
    remedy = next((remedy for sign, remedy in _REMEDIES if sign in lower), "")
    return f"{text}; {remedy}, or turn the check off: verify: false, --insecure" if remedy else text


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
