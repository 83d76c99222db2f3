"""Creates all Redis clients, and translates their errors.

redis-py resends a command whose reply was lost. For SET NX or XADD that is wrong: the first one may
have taken effect. So clients made here never retry; callers resend on purpose, and only commands
that may be sent twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import redis
import redis.exceptions
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.retry import Retry

from osbench.common.config.certificates import shown_url
from osbench.common.errors import StoreError, StoreMissing, StoreUnreachable
from osbench.common.protocol.kept_addresses import KeptConnection, KeptSSLConnection

#: Oldest supported server.
MINIMUM_VERSION = (6, 2)

Client = redis.Redis

#: Errors of a server that may recover: out of memory, failing over, busy with a script; or another
#: value stands in the place of ours, until that is written again. redis-py removes the code from
#: the message if it has a class for it.
_PASSING = (
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
)
_PASSING_CODES = ("BUSY", "MISCONF", "NOREPLICAS", "WRONGTYPE")
#: What redis-py puts before it: the command of a pipeline, with what it was to write.
_OF_PIPELINE = " of pipeline caused error: "

#: Where operators read what a user of Redis has to be allowed.
_ACL_PAGE = "docs/operations.md#a-user-for-osbench"
_ANOTHER_PROTOCOL = "does not speak the protocol of Redis"
_WRONG_ADDRESS = "is [messaging] redis_url right?"


def connect(url: str, timeout_s: float) -> Client:
    """Return a Redis client that never resends commands; it connects at its first command.

    `timeout_s` limits connecting and each reply, so it must be longer than any BLOCK that is sent.
    Only the first connection of a process to a server waits for its name to be looked up. Raises
    StoreError for a malformed URL.
    """
    kinds: dict[str, type[Connection]] = {"redis": KeptConnection, "rediss": KeptSSLConnection}
    kind = kinds.get(url.partition("://")[0].lower())
    try:
        return redis.Redis.from_url(
            url,
            **({"connection_class": kind} if kind is not None else {}),
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            retry_on_error=[],
            health_check_interval=0,
        )
    except ValueError:
        # the malformed part may be the password
        raise StoreError(
            f"[messaging] redis_url: {shown_url(url)} is not an address of Redis; begin it with "
            "redis://, rediss:// or unix://, and write special characters of its password as %XX"
        ) from None


@contextmanager
def translating_errors(server: Client | str) -> Iterator[None]:
    """Translate redis-py's errors in the block to StoreError and StoreUnreachable.

    StoreUnreachable: no reply, or an error that may pass, such as no memory left. StoreError: Redis
    refuses access or a command. Messages name the `server`, a client or a URL.
    """
    try:
        yield
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise StoreError(
            f"{server_name(server)} refuses access ({error}): {_remedy(error)}"
        ) from None
    except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
        raise _away(server, f"does not respond: {error}") from None
    except redis.exceptions.InvalidResponse:
        # what it said is of another protocol: TLS, HTTP
        raise _away(server, _ANOTHER_PROTOCOL) from None
    except redis.ResponseError as error:
        text = str(error).rpartition(_OF_PIPELINE)[2]
        if isinstance(error, _PASSING) or text.startswith(_PASSING_CODES):
            raise _away(server, f"cannot serve now: {text}") from None
        raise StoreError(
            f"{server_name(server)} refused a command: {text}; check its configuration and its log"
        ) from None


def _away(server: Client | str, how: str) -> StoreUnreachable:
    return StoreUnreachable(f"{server_name(server)} {how}", server=server_name(server))


def server_name(server: Client | str) -> str:
    """Return "Redis at ADDRESS" for messages, without user and password."""
    return f"Redis at {shown_url(server if isinstance(server, str) else _address(server))}"


def _address(client: Client) -> str:
    """Return the URL of the server of a client, without user and password."""
    pool = client.connection_pool
    how = pool.connection_kwargs
    if "path" in how:
        return f"unix://{how['path']}"
    scheme = "rediss" if issubclass(pool.connection_class, redis.SSLConnection) else "redis"
    host = str(how.get("host", "localhost"))
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{how.get('port', 6379)}/{how.get('db') or 0}"


def _remedy(error: redis.RedisError) -> str:
    if isinstance(error, redis.exceptions.NoPermissionError):
        return f"give its user the permissions of {_ACL_PAGE}"
    # with the older and the newer protocol
    if any(sign in str(error) for sign in ("required", "already authenticated")):
        return "it wants a password, before the host in [messaging] redis_url: :PASSWORD@HOST"
    return "check user and password in [messaging] redis_url"


#: What is wrong with certificates by what the TLS library says, and what to do; first match counts.
_CERTIFICATES = (
    ("certificate has expired", "renew its certificate, or set the clocks"),
    ("not yet valid", "set the clocks"),
    *(
        (f"{kind} mismatch", "use the name or address that its certificate has, or make one for it")
        for kind in ("hostname", "ip address")
    ),
    ("CERTIFICATE_VERIFY_FAILED", "name the file of its authority: [messaging] tls_ca_file"),
    (
        "CERTIFICATE_REQUIRED",
        "it asks for a certificate of this client: "
        "[messaging] tls_certificate_file and tls_key_file",
    ),
    ("ALERT_CERTIFICATE_EXPIRED", "renew [messaging] tls_certificate_file"),
    (
        "ALERT_UNKNOWN_CA",
        "[messaging] tls_certificate_file has to be from the authority that it knows",
    ),
    ("KEY_VALUES_MISMATCH", "[messaging] tls_key_file is not the key of tls_certificate_file"),
    ("NO_CERTIFICATE_OR_CRL_FOUND", "[messaging] tls_ca_file has no certificate"),
    ("PEM lib", "[messaging] tls_certificate_file and tls_key_file have to be PEM"),
)


def certificate_remedy(text: str) -> str:
    """Return advice for a TLS error's text if a certificate is the reason; "" for other errors."""
    lower = text.lower()
    return next((what for sign, what in _CERTIFICATES if sign.lower() in lower), "")


def _address_remedy(url: str, error: StoreUnreachable) -> str:
    """Return advice for a Redis that does not respond, from its URL and the error's text.

    _WRONG_ADDRESS if neither certificates nor TLS seem to be the reason.
    """
    text = str(error)
    if remedy := certificate_remedy(text):
        return remedy
    lost = any(sign in text for sign in ("EOF occurred", "closed", "reset", "Broken pipe"))
    if url.startswith("rediss://") and lost:
        # TLS 1.3: the server may be gone before its reason is read
        likely = "ALERT_UNKNOWN_CA" if "ssl_certfile" in url else "CERTIFICATE_REQUIRED"
        return f"perhaps {certificate_remedy(likely)}"
    if url.startswith("rediss://") and ("SSL" in text or "Timeout" in text):
        return "if it has no TLS at this port, [messaging] redis_url begins with redis://"
    if url.startswith("redis://") and (lost or _ANOTHER_PROTOCOL in text):
        return "if it expects TLS, [messaging] redis_url begins with rediss://"
    return _WRONG_ADDRESS


def check(client: Client, url: str) -> None:
    """Raise StoreMissing if no Redis responds at `url`, StoreError if it cannot be used.

    It cannot if it is too old, may evict keys or refuses access, or if TLS or certificates seem to
    be the reason of no response. `client` is the client for `url`.
    """
    try:
        with translating_errors(url):
            version = str(client.info("server")["redis_version"])
            policy = str(client.info("memory").get("maxmemory_policy", "noeviction"))
    except StoreUnreachable as error:
        # before a run has started this means a wrong address, or a server that is not there yet
        remedy = _address_remedy(url, error)
        kind = StoreMissing if remedy == _WRONG_ADDRESS else StoreError
        raise kind(f"{error}; {remedy}") from None
    if tuple(map(int, re.findall(r"\d{1,9}", version)[:2])) < MINIMUM_VERSION:
        raise StoreError(
            f"Redis at {shown_url(url)} is version {version[:40]}; install Redis 6.2 or newer, or "
            "Valkey"
        )
    if policy != "noeviction":
        raise StoreError(
            f"Redis at {shown_url(url)} has maxmemory-policy {policy} and could drop results: "
            "run `redis-cli config set maxmemory-policy noeviction`"
        )
