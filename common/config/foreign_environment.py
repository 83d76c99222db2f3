"""Environment variables that Celery and kombu read, and osbench ignores.

`broker.application` is made so that an application reads none of them. Variables that a module
reads while it is imported are removed before.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

#: Variables of an application; they stay, since a plug-in may test a service by them.
_OF_APPLICATIONS = (
    "CELERY_BROKER_READ_URL",
    "CELERY_BROKER_URL",
    "CELERY_BROKER_WRITE_URL",
    "CELERY_CONFIG_MODULE",
    "CELERY_LOADER",
    "CELERY_RESULT_BACKEND",
)
#: Variables that modules of Celery 5 and kombu 5 read while they are imported.
_AT_IMPORT = (
    "AUTOSCALE_KEEPALIVE",
    "CELERY_BENCH",
    "CELERY_BENCH_EVERY",
    "CELERY_CUSTOM_WORKER_POOL",
    "CELERY_TRACE_APP",
    "CELERY_WORKER_REVOKES_MAX",
    "CELERY_WORKER_REVOKE_EXPIRES",
    "CELERY_WORKER_SUCCESSFUL_EXPIRES",
    "CELERY_WORKER_SUCCESSFUL_MAX",
    "C_BENCH",
    "C_BENCH_EVERY",
    "C_IMPDEBUG",
    "C_REMDEBUG",
    "C_STRICT_APP",
    "C_WARN_APP",
    "C_WNOCONF",
    "DISABLE_TRACEBACKS",
    "EVENTLET_NOBLOCK",
    "FORKED_BY_MULTIPROCESSING",
    "GEVENT_NOBLOCK",
    "KOMBU_DEBUG_POOL",
    "KOMBU_DISABLE_LIMIT_PROTECTION",
    "KOMBU_LOG_CHANNEL",
    "KOMBU_LOG_CONNECTION",
    "KOMBU_LOG_DEBUG",
    "MP_LOG",
    "MP_MAIN_FILE",
    "NOSETPS",
    "PICKLE_PROTOCOL",
    "REMAP_SIGTERM",
    "TIMER_DEBUG",
    "USE_FAST_LOCALS",
)


def drop_foreign_variables(environ: MutableMapping[str, str]) -> None:
    """Remove the variables that Celery and kombu read at import."""
    for name in _AT_IMPORT:
        environ.pop(name, None)


def ignored_variables_note(environ: Mapping[str, str]) -> str:
    """Return a note on variables in `environ` that Celery would read, and osbench ignores.

    Returns "" if there are none. A variable with an empty value counts as missing.
    """
    names = [name for name in _OF_APPLICATIONS if environ.get(name)]
    if not names:
        return ""
    return (
        f"{', '.join(names)} of the environment ignored; [messaging] broker_url and redis_url of "
        "osbench.conf name the servers"
    )
