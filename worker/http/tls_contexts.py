"""TLS settings of HTTP requests, with caches of their contexts and sessions."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import requests.utils

from osbench.common.files.named_files import PEM_BYTES
from osbench.common.files.regular_files import read_regular
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import CannotSecure

#: Sessions that are kept, at most.
SESSIONS = 256


class Trust(NamedTuple):
    """TLS settings of a request: trusted CA certificates, and the client's own certificate."""

    #: File or folder with CA certificates; None checks nothing.
    bundle: str | None
    #: A file with certificate and key, or the file of each; None shows none.
    certificate: str | tuple[str, str] | None = None


def trust_of(options: Mapping[str, Any]) -> Trust:
    """Return the TLS settings for the options `verify` and `cert`, which are as in `requests`.

    Without `verify`, or with True, certificates are checked with `default_bundle`.
    """
    verify = options.get("verify", True)
    certificate = options.get("cert")
    if isinstance(certificate, list):
        certificate = tuple(certificate)
    if verify is False:
        return Trust(None, certificate)
    return Trust(verify if isinstance(verify, str) else default_bundle(), certificate)


def default_bundle() -> str:
    """Return the path of the CA bundle that `requests` uses.

    It is REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE of the environment, else the bundle of `requests`.
    """
    environ = os.environ
    return (
        environ.get("REQUESTS_CA_BUNDLE")
        or environ.get("CURL_CA_BUNDLE")
        or requests.utils.DEFAULT_CA_BUNDLE_PATH
    )


class TlsContexts:
    """Caches of TLS contexts by settings, and of TLS sessions by origin. Thread-safe."""

    def __init__(self) -> None:
        self._contexts: dict[Trust, ssl.SSLContext] = {}
        self._sessions: dict[object, ssl.SSLSession] = {}
        self._lock = threading.Lock()

    def kept(self, trust: Trust) -> ssl.SSLContext | None:
        """Return the cached context for TLS settings; None if there is none yet."""
        return self._contexts.get(trust)

    def context(self, trust: Trust) -> ssl.SSLContext:
        """Return the context for TLS settings; made and cached if needed, by one thread at a time.

        Raises CannotSecure if its files cannot be read or used.
        """
        # one at a time: reading a CA bundle takes some ms of CPU
        with self._lock:
            context = self._contexts.get(trust)
            if context is None:
                context = self._contexts[trust] = _context(trust)
        return context

    def session(self, origin: object) -> ssl.SSLSession | None:
        """Return the TLS session of an earlier connection to `origin`, to resume; else None."""
        return self._sessions.get(origin)

    def keep_of(self, origin: object, tls: TlsChannel | None) -> None:
        """Cache the TLS session of a connection for the next connection to `origin`.

        Called after the first response. Does nothing without TLS, or if the connection resumed a
        session itself. At most `SESSIONS` are kept; the oldest is dropped.
        """
        # one that was taken up is still good, and a copy of it costs as much as ten requests
        session = tls.session if tls is not None and not tls.resumed else None
        if session is not None:
            self._keep(origin, session)

    def _keep(self, origin: object, session: ssl.SSLSession) -> None:
        with self._lock:
            self._sessions.pop(origin, None)
            while len(self._sessions) >= SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[origin] = session


def _context(trust: Trust) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if trust.bundle is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            if Path(trust.bundle).is_dir():
                context.load_verify_locations(capath=trust.bundle)
            else:
                _refuse_endless(trust.bundle)
                context.load_verify_locations(cafile=trust.bundle)
        except OSError as error:
            raise CannotSecure(f"CA bundle {trust.bundle}: {error.strerror}") from error
    shown = trust.certificate
    if shown is not None:
        files = (shown,) if isinstance(shown, str) else shown
        try:
            for file in files:
                _refuse_endless(file)
            context.load_cert_chain(*files)
        except OSError as error:
            raise CannotSecure(f"client certificate {files[0]}: {error.strerror}") from error
    return context


def _refuse_endless(file: str) -> None:
    """Raise OSError for a pipe, a device, or a very large file: OpenSSL would read to the end."""
    read_regular(Path(file), PEM_BYTES)
