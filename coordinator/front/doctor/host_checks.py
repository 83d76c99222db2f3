"""Checks this host: Python, CPU, limits, data directory, keys, plug-ins, deployments.

Certificates in the files of [messaging] are checked whether or not a server accepts them.
"""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from cryptography import x509
from oslo_config import cfg

from osbench import __version__
from osbench.common.errors import OsbenchError
from osbench.common.files.named_files import PEM_BYTES, read_named
from osbench.common.machine.cpu_quota import cpu_quota, usable_cores
from osbench.common.machine.python_build import is_unoptimised, python_build
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.formatting import count, size
from osbench.coordinator.front.doctor.diagnosis import ERROR, OK, WARNING, Diagnosis
from osbench.coordinator.results.storage.run_retention import check_writable
from osbench.coordinator.task.deployments.registry import Deployments

#: Less free space than this may not last for a run, and a run with less than that fails, bytes.
LEAST_FREE = 1 << 30
NO_ROOM = 64 << 20
#: Share of the periods of a CPU quota that may have been throttled.
_THROTTLED = 0.05
#: Files that a worker process opens in addition to the files of its virtual users.
OWN_FILES = 64
#: A certificate that ends sooner is to be renewed, days.
SOON_DAYS = 30
DAY_S = 86_400.0
RENEW = "renew it (docs/operations.md#tls); workers have one too"
_NEW_AUTHORITY = (
    "make a new set of certificates and restart Redis, coordinator and workers "
    "(docs/operations.md#tls)"
)


def look_at_host(conf: cfg.ConfigOpts, plugins: Plugins) -> Iterator[Diagnosis]:
    """Yield the diagnoses of this host: one or more per check, also if all is well.

    Imports the files of `plugins`. Keys are checked only with a shared Redis, plug-ins and
    deployments only if there are some.
    """
    yield _version()
    yield _cores(conf)
    yield _data_dir(conf)
    yield from _keys(conf)
    yield _files(conf)
    yield from _plugins(plugins)
    yield from _deployments(conf)


def _version() -> Diagnosis:
    slow = is_unoptimised()
    return Diagnosis(
        about="version",
        state=WARNING if slow else OK,
        detail=f"osbench {__version__}, Python {python_build()}",
        remedy="for more load from the same cores take a Python that was built with"
        " --enable-optimizations, as distributions have; pyenv:"
        " PYTHON_CONFIGURE_OPTS='--enable-optimizations --with-lto' pyenv install"
        if slow
        else "",
    )


def _cores(conf: cfg.ConfigOpts) -> Diagnosis:
    quota, usable = cpu_quota(), usable_cores()
    cores, most = count(os.cpu_count() or 1, "core"), conf.worker.processes or usable
    workers = f"worker processes by default: {usable}"
    if quota is None:
        return Diagnosis(about="CPU", state=OK, detail=f"{cores}, {usable} usable; {workers}")
    periods, throttled = quota.periods()
    share = throttled / periods if periods else 0.0
    detail = (
        f"{cores}; the container's quota is {quota.cores:g}, which throttled it in"
        f" {100 * share:.0f} % of its periods so far; {workers}"
    )
    if most <= max(1.0, quota.cores) and share <= _THROTTLED:
        return Diagnosis(about="CPU", state=OK, detail=detail)
    remedy = (
        f"raise the quota, or set [worker] processes to {usable}"
        if most > quota.cores
        else ("raise the quota, or keep other programs out of the container")
    )
    return Diagnosis(about="CPU", state=WARNING, detail=detail, remedy=remedy)


def _data_dir(conf: cfg.ConfigOpts) -> Diagnosis:
    about, path = "data directory", Path(conf.data_dir)
    try:
        check_writable(conf.data_dir)
    except OsbenchError as error:
        return Diagnosis(about=about, state=ERROR, detail=str(error))
    nearest = next(one for one in (path, *path.parents) if one.exists())
    free, volume = shutil.disk_usage(nearest).free, os.statvfs(nearest)
    detail = f"{path}, {size(free)} free"
    # some file systems do not count files
    no_files = bool(volume.f_files) and not volume.f_favail
    if no_files:
        detail += ", and no file can be made: its file system has no inode left"
    state = ERROR if free < NO_ROOM or no_files else WARNING if free < LEAST_FREE else OK
    if state == OK:
        return Diagnosis(about=about, state=OK, detail=detail)
    remedy = "`osbench-coord runs prune` removes old runs; or name another [DEFAULT] data_dir"
    return Diagnosis(about=about, state=state, detail=detail, remedy=remedy)


def _keys(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    if not conf.messaging.redis_url:
        return  # local mode has separate keys
    try:
        ring = Keyring.load(conf.security.key_file)
    except OsbenchError as error:
        yield Diagnosis(about="keys", state=ERROR, detail=str(error))
        return
    count = len(ring.keys)
    detail = f"{conf.security.key_file}, {count} {'key' if count == 1 else 'keys'}"
    yield Diagnosis(about="keys", state=OK, detail=f"{detail}, mode 0600")


def _files(conf: cfg.ConfigOpts) -> Diagnosis:
    # workers raise the soft limit to the hard one
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = int(conf.worker.virtual_users) + OWN_FILES
    bound = "any number of" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    detail = f"{bound} open files for each process of this host"
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return Diagnosis(
            about="open files",
            state=WARNING,
            detail=f"{detail}; a worker of [worker] virtual_users = "
            f"{conf.worker.virtual_users} may open {wanted:,}",
            remedy="raise the limit (LimitNOFILE, ulimits, /etc/security/limits.conf)",
        )
    return Diagnosis(about="open files", state=OK, detail=detail)


def _plugins(plugins: Plugins) -> Iterator[Diagnosis]:
    if not plugins.paths:
        return
    try:
        plugins.import_files()
        faults = plugins.faults()
    except OsbenchError as error:
        faults = [str(error)]
    for fault in faults:
        yield Diagnosis(about="plug-ins", state=ERROR, detail=fault)
    if not faults:
        yield Diagnosis(about="plug-ins", state=OK, detail=", ".join(plugins.paths))


def _deployments(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    try:
        kept = Deployments(conf.data_dir)
        names = kept.names()
        for name in names:
            kept.get(name)
    except OsbenchError as error:
        yield Diagnosis(about="deployments", state=ERROR, detail=str(error))
        return
    if names:
        yield Diagnosis(about="deployments", state=OK, detail=", ".join(names))


def look_at_certificates(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    """Yield diagnoses of the certificate files of [messaging]; none if none is configured.

    Of the authority only faults, of this host's certificate its validity. It is a warning from
    `SOON_DAYS` days before its end on, an error outside its validity. Unreadable files are errors.
    """
    messaging = conf.messaging
    if messaging.tls_ca_file:
        found = _looked_at("tls_ca_file", messaging.tls_ca_file, "the authority", _NEW_AUTHORITY)
        # only a faulty one is reported: other faults show in the certificates that it signed
        yield from (one for one in found if one.state != OK)
    if messaging.tls_certificate_file:
        option, path = "tls_certificate_file", messaging.tls_certificate_file
        # those after the first are of authorities between
        yield from islice(_looked_at(option, path, "the certificate of this host", RENEW), 1)


def _looked_at(option: str, path: str, what: str, remedy: str) -> Iterator[Diagnosis]:
    try:
        certificates = x509.load_pem_x509_certificates(read_named(path, PEM_BYTES))
    except (OSError, ValueError) as error:
        yield Diagnosis(
            about="TLS",
            state=ERROR,
            detail=f"{option}: {error}",
            remedy=f"[messaging] {option} has to be a PEM file that this user may read",
        )
        return
    for one in certificates:
        yield _validity(one, f"{what} ({option})", remedy)


def _validity(certificate: x509.Certificate, what: str, remedy: str) -> Diagnosis:
    now = time.time()
    if now < certificate.not_valid_before_utc.timestamp():
        detail = f"{what} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        return Diagnosis(
            about="TLS", state=ERROR, detail=detail, remedy="set the clock of this host"
        )
    left = (certificate.not_valid_after_utc.timestamp() - now) / DAY_S
    if left <= 0:
        detail = f"{what} expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        return Diagnosis(about="TLS", state=ERROR, detail=detail, remedy=remedy)
    detail = f"{what} is valid for {count(round(left), 'day')}"
    if left < SOON_DAYS:
        return Diagnosis(about="TLS", state=WARNING, detail=detail, remedy=remedy)
    return Diagnosis(about="TLS", state=OK, detail=detail)
