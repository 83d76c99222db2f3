"""What `doctor` says of the disk of the data directory, and of the cores of this host."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
import sysconfig
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from osbench.common.machine import python_build
from osbench.common.machine.cpu_quota import CpuQuota
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.doctor import host_checks
from osbench.coordinator.front.doctor.diagnosis import Diagnosis


def configured(home: Path, processes: int = 0) -> Any:
    return SimpleNamespace(
        data_dir=str(home / "not" / "yet"),
        messaging=SimpleNamespace(redis_url=""),
        worker=SimpleNamespace(virtual_users=1, processes=processes),
    )


def on_disk(monkeypatch: pytest.MonkeyPatch, home: Path, free: int, inodes: int = 9) -> Diagnosis:
    """What is said of a data directory on a disk with so much room."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=99, f_favail=inodes))
    found = host_checks.look_at_host(configured(home), Plugins())
    return next(one for one in found if one.about == "data directory")


@pytest.mark.parametrize(
    ("free", "state"), [(9 << 30, "ok"), (900 << 20, "warning"), (63 << 20, "error"), (0, "error")]
)
def test_a_disk_without_room_for_a_run_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, state: str
) -> None:
    found = on_disk(monkeypatch, tmp_path, free)

    assert found.state == state
    assert ("runs prune" in found.remedy) == (state != "ok")
    assert found.detail.endswith(" free")


def test_a_disk_that_takes_no_more_files_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = on_disk(monkeypatch, tmp_path, 9 << 30, inodes=0)

    assert found.state == "error"
    assert "no inode left" in found.detail


@pytest.mark.parametrize(
    ("switches", "prefix", "state", "said"),
    [
        ("'--enable-shared'", "/opt/py", "warning", ", not optimised"),
        ("'--enable-optimizations' '--with-lto'", "/opt/py", "ok", ""),
        # a distribution's, optimised by its own means
        ("'--enable-shared'", "/usr", "ok", ""),
        (None, "/opt/py", "ok", ""),
    ],
)
def test_a_python_that_was_built_without_optimisation_is_told(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    switches: str | None,
    prefix: str,
    state: str,
    said: str,
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _: switches)
    monkeypatch.setattr(sys, "base_prefix", prefix)
    python_build.is_unoptimised.cache_clear()

    found = next(host_checks.look_at_host(configured(tmp_path), Plugins()))
    python_build.is_unoptimised.cache_clear()

    assert (found.about, found.state) == ("version", state)
    assert found.detail.endswith(f"Python {platform.python_version()}{said}")
    assert ("--enable-optimizations" in found.remedy) == bool(said)


@pytest.mark.parametrize(
    ("quota", "throttled", "processes", "state", "said", "remedy"),
    [
        (None, 0, 0, "ok", "worker processes by default: 2", ""),
        (2.0, 1, 0, "ok", "quota is 2, which throttled it in 1 % of its periods", ""),
        (2.0, 40, 0, "warning", "in 40 % of its periods", "keep other programs out"),
        (2.0, 1, 8, "warning", "worker processes by default: 2", "set [worker] processes to 2"),
    ],
)
def test_a_quota_of_the_container_is_told(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    quota: float | None,
    throttled: int,
    processes: int,
    state: str,
    said: str,
    remedy: str,
) -> None:
    (tmp_path / "stat").write_text(f"nr_periods 100\nnr_throttled {throttled}\n")
    found = None if quota is None else CpuQuota(quota, tmp_path / "stat")
    monkeypatch.setattr(host_checks, "cpu_quota", lambda: found)
    monkeypatch.setattr(host_checks, "usable_cores", lambda: 2)

    findings = host_checks.look_at_host(configured(tmp_path, processes), Plugins())
    cpu = next(one for one in findings if one.about == "CPU")

    assert cpu.state == state
    assert said in cpu.detail
    assert remedy in cpu.remedy


@pytest.mark.parametrize(
    ("hard", "state"), [(resource.RLIM_INFINITY, "ok"), (65, "ok"), (64, "warning")]
)
def test_a_limit_of_open_files_below_those_of_the_users_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hard: int, state: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, hard))

    found = host_checks.look_at_host(configured(tmp_path), Plugins())

    assert next(one.state for one in found if one.about == "open files") == state


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
    return [(one.state, one.detail, one.remedy) for one in host_checks.look_at_certificates(conf)]


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
