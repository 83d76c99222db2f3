"""What `doctor` says of the certificates in the files of [messaging]."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from osbench.coordinator.front.doctor.certificate_checks import look_at_certificates


def certificate(begins_days: float, ends_days: float) -> bytes:
    """A certificate that is valid from and until so many days after now, in PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tried")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now + timedelta(days=begins_days))
        .not_valid_after(now + timedelta(days=ends_days))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def findings(path: Path, content: bytes, option: str) -> list[tuple[str, str, str]]:
    """State, detail and remedy where an option names a file of this content."""
    path.write_bytes(content)
    options = {"tls_ca_file": "", "tls_certificate_file": "", option: str(path)}
    conf: Any = SimpleNamespace(messaging=SimpleNamespace(**options))
    return [(one.state, one.detail, one.remedy) for one in look_at_certificates(conf)]


@pytest.mark.parametrize(
    ("option", "what", "remedy"),
    [
        ("tls_ca_file", "the authority (tls_ca_file)", "make a new set of certificates"),
        ("tls_certificate_file", "the certificate of this host (tls_certificate_file)", "renew it"),
    ],
)
def test_a_certificate_that_has_ended_or_ends_soon_is_told(
    tmp_path: Path, option: str, what: str, remedy: str
) -> None:
    (ended,) = findings(tmp_path / "ended.pem", certificate(-9, -2), option)
    (soon,) = findings(tmp_path / "soon.pem", certificate(-9, 5.2), option)
    (early,) = findings(tmp_path / "early.pem", certificate(1, 90), option)

    assert ended[0] == "error"
    assert ended[1].startswith(f"{what} expired on 20")
    assert ended[2].startswith(remedy)
    assert soon[:2] == ("warning", f"{what} is valid for 5 days")
    assert soon[2].startswith(remedy)
    assert early[0] == "error"
    assert early[2] == "set the clock of this host"


def test_each_authority_of_a_file_is_looked_at(tmp_path: Path) -> None:
    both = certificate(-9, 400) + certificate(-9, -2)

    (found,) = findings(tmp_path / "both.pem", both, "tls_ca_file")

    assert found[0] == "error"
    assert findings(tmp_path / "good.pem", certificate(-9, 400), "tls_ca_file") == []


def test_a_file_without_a_certificate_is_told(tmp_path: Path) -> None:
    (found,) = findings(tmp_path / "none.pem", b"no certificate", "tls_certificate_file")

    assert found[0] == "error"
    assert (
        found[2] == "[messaging] tls_certificate_file has to be a PEM file that this user may read"
    )
