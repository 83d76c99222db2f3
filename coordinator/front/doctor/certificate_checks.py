"""Checks the certificates in the files of [messaging], whether or not a server accepts them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from cryptography import x509
from oslo_config import cfg

from osbench.common.files.named_files import PEM_BYTES, read_named
from osbench.coordinator.formatting import count
from osbench.coordinator.front.doctor.diagnosis import ERROR, OK, WARNING, Diagnosis

#: A certificate that ends sooner is to be renewed, days.
SOON_DAYS = 30
DAY_S = 86_400.0
RENEW = "renew it (docs/operations.md#tls); workers have one too"
_NEW_AUTHORITY = (
    "make a new set of certificates and restart Redis, coordinator and workers "
    "(docs/operations.md#tls)"
)


def look_at_certificates(conf: cfg.ConfigOpts) -> Iterator[Diagnosis]:
    """Yield diagnoses of the certificate files of [messaging]; none if none is configured.

    Of the authority only faults, of this host's certificate its validity. It is a warning from
    `SOON_DAYS` days before the end on, an error after it. Unreadable files are errors.
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
