"""Adds the TLS certificates of [messaging] to the addresses of Redis and broker as parameters.

redis-py and kombu read them there. A parameter that an address already has overrides an option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from oslo_config import cfg

from osbench.common.files.regular_files import open_regular
from osbench.common.secrets.url_masking import mask_url

#: Options of [messaging], and the parameters that they become.
PARAMETERS = {
    "tls_ca_file": "ssl_ca_certs",
    "tls_certificate_file": "ssl_certfile",
    "tls_key_file": "ssl_keyfile",
}
_WITH_TLS = ("rediss://", "amqps://")
_PARAMETER = re.compile(r"(?<=[?&])ssl_\w+=[^&\s]*&?")


def complete(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Add the configured certificates to addresses with TLS, of Redis and the broker, in `conf`.

    Parameters that an address has stay. A generator: acts while it is iterated, and yields a
    message per problem: an unreadable file, a key without its certificate, or addresses of which
    none has TLS. Without certificates it does nothing.
    """
    messaging = conf.messaging
    files = {name: messaging[name] for name in PARAMETERS if messaging[name]}
    if not files:
        return
    named = ", ".join(f"[messaging] {name}" for name in files)
    if "tls_key_file" in files and "tls_certificate_file" not in files:
        yield "[messaging] tls_key_file: needs tls_certificate_file, to which the key belongs"
    for name, path in files.items():
        try:
            # OpenSSL reads it, without a bound
            open_regular(Path(path)).close()
        except OSError as error:
            yield f"[messaging] {name} = {path!r}: {error.strerror}"
    addresses = {name: messaging[name] for name in ("redis_url", "broker_url") if messaging[name]}
    secured = {name: url for name, url in addresses.items() if url.startswith(_WITH_TLS)}
    if addresses and not secured:
        yield f"{named}: not used, since no address begins with rediss:// or amqps://"
    for name, url in secured.items():
        conf.set_override(name, _with(url, files), "messaging")


def _with(url: str, files: dict[str, str]) -> str:
    parts = urlsplit(url)
    there = parse_qsl(parts.query, keep_blank_values=True)
    known = {name for name, _ in there}
    added = [
        (PARAMETERS[option], path)
        for option, path in files.items()
        if PARAMETERS[option] not in known
    ]
    return urlunsplit(parts._replace(query=urlencode([*there, *added], quote_via=quote, safe="/")))


def shown_url(url: str) -> str:
    """Return an address for messages: password masked, parameters of TLS (ssl_...) removed."""
    return _PARAMETER.sub("", mask_url(url)).rstrip("?&")


def taken_from(url: str) -> tuple[str, dict[str, str]]:
    """Split an address: return it without its parameters of TLS (ssl_...), and these by name."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    found = {name: value for name, value in pairs if name.startswith("ssl_")}
    rest = [pair for pair in pairs if pair[0] not in found]
    return urlunsplit(parts._replace(query=urlencode(rest))), found
