"""Verification: any changed byte of certificate or run, and each false figure, is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.certified_runs import (
    PlannedRun,
    certificate_of,
    certified_run,
    changed_json,
    signing_key,
    statement_of,
)
from helpers.kept_runs import DAMAGES, damage
from osbench.coordinator.results.accounting.totals import Bound
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.certificate.certificate_file import (
    Certificate,
    parse_certificate,
    read_certificate,
    sealed_content,
)
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.sealed_statement import SealedStatement, SealedWorkload
from osbench.edges.certificate.verification import verify

FILES = ("blocks", "digests.json", "journal", "run.json", "summary.json", "timeline")
OTHER_RUN = PlannedRun(run="20260402-120000-cd34ef", seed=2)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A certified run, which no test changes."""
    return certified_run(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def statement(directory: RunDirectory) -> SealedStatement:
    """The statement on it."""
    return statement_of(directory)


@pytest.fixture
def copied(directory: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A copy of that run."""
    folder = tmp_path / directory.path.name
    folder.mkdir()
    for path in directory.path.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return RunDirectory(folder)


def of(statement: SealedStatement) -> Certificate:
    """The certificate of a statement, as a verifier reads it."""
    return parse_certificate(sealed_content(statement, signing_key()))


def refusal(certificate: Certificate, **known: Any) -> str:
    """The message by which a certificate is refused."""
    with pytest.raises(CertificateRefused) as refused:
        verify(certificate, **known)
    return str(refused.value)


def test_a_true_certificate_is_verified_by_key_and_files(
    directory: RunDirectory, statement: SealedStatement
) -> None:
    found = verify(of(statement), key=signing_key().public, directory=directory)

    assert (found.is_known_key, found.has_files, found.has_task) == (True, True, False)


def test_another_key_is_refused_with_both_fingerprints(statement: SealedStatement) -> None:
    said = refusal(of(statement), key=signing_key(2).public)

    assert signing_key(1).public.fingerprint in said
    assert signing_key(2).public.fingerprint in said


def test_each_flipped_bit_of_a_certificate_is_refused(statement: SealedStatement) -> None:
    # each byte takes a verification
    small = replace(statement.evidence, workloads=(), requested=(), files={}, hosts=())
    content = sealed_content(replace(statement, evidence=small), signing_key())
    chance = random.Random(1)

    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        with pytest.raises(ValueError, match=r"."):
            parse_certificate(bytes(changed))


@pytest.mark.parametrize("how", [*DAMAGES, "gone", "swapped"])
@pytest.mark.parametrize("name", FILES)
def test_each_damage_of_each_file_is_refused_by_name(
    copied: RunDirectory, statement: SealedStatement, tmp_path: Path, name: str, how: str
) -> None:
    other = certified_run(tmp_path / "other", OTHER_RUN) if how == "swapped" else copied
    chance = random.Random(f"{name} {how}")
    damage(copied.path / name, how, chance, other.path / name)

    said = refusal(of(statement), directory=copied)

    if (name, how) != ("run.json", "swapped"):
        assert f"{name} {'is missing' if how == 'gone' else 'was changed'}" in said


@pytest.mark.parametrize("name", ["failure.json", "counters", "traces/kept", "extra", "traces/x"])
def test_an_added_file_is_refused_by_name(
    copied: RunDirectory, statement: SealedStatement, name: str
) -> None:
    path = copied.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"{}")

    assert f"{name} was added" in refusal(of(statement), directory=copied)


def test_files_of_another_run_are_refused_with_both_ids(
    directory: RunDirectory, statement: SealedStatement, tmp_path: Path
) -> None:
    other = certified_run(tmp_path, OTHER_RUN)

    said = refusal(of(statement), directory=other)

    assert directory.path.name in said
    assert other.path.name in said


def test_a_folder_under_another_name_is_verified(
    copied: RunDirectory, statement: SealedStatement
) -> None:
    renamed = copied.path.rename(copied.path.with_name("unpacked here"))

    assert verify(of(statement), directory=RunDirectory(renamed)).has_files


def _first(statement: SealedStatement, **parts: Any) -> SealedStatement:
    (workload,) = statement.evidence.workloads
    changed: SealedWorkload = replace(workload, **parts)
    return replace(statement, evidence=replace(statement.evidence, workloads=(changed,)))


FALSE: dict[str, Callable[[SealedStatement], SealedStatement]] = {
    "figures": lambda one: _first(
        one,
        times={
            **one.evidence.workloads[0].times,
            "service": replace(one.evidence.workloads[0].times["service"], mean=0.01),
        },
    ),
    "throughput": lambda one: _first(
        one, throughput=replace(one.evidence.workloads[0].throughput, ok_per_s=1e6)
    ),
    "offered": lambda one: _first(
        one, offered=replace(one.evidence.workloads[0].offered, concurrency=900)
    ),
    "scenario": lambda one: _first(one, scenario="Authenticate.keystone"),
    "blocks": lambda one: replace(one, evidence=replace(one.evidence, blocks=1)),
    "lag_limit_s": lambda one: replace(one, evidence=replace(one.evidence, lag_limit_s=9.0)),
    "deployment": lambda one: replace(one, evidence=replace(one.evidence, deployment="prod")),
    "hosts": lambda one: replace(one, evidence=replace(one.evidence, hosts=())),
    "requested": lambda one: replace(one, evidence=replace(one.evidence, requested=({"a": 1},))),
    "finished_at": lambda one: replace(
        one, evidence=replace(one.evidence, finished_at="2030-01-01T00:00:00.000Z")
    ),
}


@pytest.mark.parametrize("part", FALSE)
def test_a_false_figure_that_the_key_has_signed_is_refused_by_place(
    directory: RunDirectory, statement: SealedStatement, part: str
) -> None:
    certificate = of(FALSE[part](statement))

    said = refusal(certificate, directory=directory)

    assert "sealed figures do not follow from the files of the run" in said
    assert {"figures": "mean"}.get(part, part) in said


def _sums(one: SealedStatement, **counts: int) -> SealedStatement:
    return _first(one, accounting=replace(one.evidence.workloads[0].accounting, **counts))


CONTRADICTIONS: dict[str, tuple[Callable[[SealedStatement], SealedStatement], str]] = {
    "sums": (lambda one: _sums(one, ok=1), "are not the sum of their states"),
    "lost": (lambda one: _sums(one, ok=56, lost=1), "lost iterations: 1;"),
    "limited": (
        lambda one: _first(one, bounds=(Bound(cause="late", fault="generator", sentence="x"),)),
        "the load generator was the limit",
    ),
    "exit code": (
        lambda one: replace(one, evidence=replace(one.evidence, exit_code=4)),
        "exit code 4",
    ),
    "missed": (
        lambda one: replace(one, evidence=replace(one.evidence, exit_code=1)),
        "its criteria are met, and the exit code is 1",
    ),
    "no files": (
        lambda one: replace(one, evidence=replace(one.evidence, files={})),
        "it has no digest of the file journal",
    ),
    "strange file": (
        lambda one: replace(
            one,
            evidence=replace(
                one.evidence,
                files={**one.evidence.files, "../x": next(iter(one.evidence.files.values()))},
            ),
        ),
        "which is not a file of a run",
    ),
    "percentiles": (
        lambda one: _first(
            one,
            times={"service": replace(one.evidence.workloads[0].times["service"], p99=1e-9)},
        ),
        "do not ascend",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_statement_that_contradicts_itself_is_refused_without_files(
    statement: SealedStatement, case: str
) -> None:
    change, named = CONTRADICTIONS[case]

    said = refusal(of(change(statement)))

    assert "the certificate contradicts itself" in said
    assert named in said


def test_another_task_file_is_refused(statement: SealedStatement) -> None:
    named = replace(statement, seal=replace(statement.seal, task_sha256="a" * 64))

    assert verify(of(named), task_sha256="a" * 64).has_task
    assert "b" * 64 in refusal(of(named), task_sha256="b" * 64)
    assert "sealed is none" in refusal(of(statement), task_sha256="b" * 64)


def test_digests_that_fit_changed_files_do_not_help(
    copied: RunDirectory, statement: SealedStatement
) -> None:
    changed = changed_json(copied, "summary.json", lambda one: one.update(task="Another"))

    said = refusal(of(statement), directory=changed)

    assert "summary.json was changed" in said
    assert "digests.json was changed" in said


def test_a_later_version_is_named_if_figures_differ(
    directory: RunDirectory, statement: SealedStatement
) -> None:
    later = replace(
        statement,
        evidence=replace(statement.evidence, blocks=1),
        seal=replace(statement.seal, osbench="9.9.9"),
    )

    assert "osbench 0.2.0 and 9.9.9" in refusal(of(later), directory=directory)


def test_a_file_that_is_not_a_certificate_is_refused(
    tmp_path: Path, directory: RunDirectory
) -> None:
    content = certificate_of(directory)
    path = tmp_path / "x.certificate.json"
    document = json.loads(content)
    spaced = json.dumps(document, indent=2, sort_keys=True).encode()
    cases = {
        b"": "Expecting value",
        b"{}\n": "it is not an object with certificate",
        b"[" * 100_000: "nested",
        content[:-2]: ".",
        content + b"\n": "form",
        spaced: "form",
        content.replace(b'"blocks": ', b'"blocks": 1,\n   "blocks": '): "form",
        content.replace(
            b'"certificate": 1', b'"certificate": 2'
        ): "its format is 2, and this osbench reads 1",
        content.replace(b'"certificate": 1', b'"certificate": true'): "its format is True",
        content.replace(b'"rows": 59', b'"rows": ' + b"9" * 400): "a number of 400 digits",
        content.replace(b'"rows": 59', b'"rows": NaN'): "NaN",
        content.replace(b'"rows": 59', b'"rows": 1e999'): "beyond the largest float",
        "{\u201ccertificate\u201d: 1}".encode(): "not ASCII",
    }

    for changed, reason in cases.items():
        path.write_bytes(changed)
        with pytest.raises(CertificateRefused, match=reason):
            read_certificate(path)


def test_a_signed_id_that_would_leave_its_folder_is_refused(statement: SealedStatement) -> None:
    for run_id in ("../../x", "", "a/b", "\x1b[2J"):
        changed = replace(statement, evidence=replace(statement.evidence, run_id=run_id))
        with pytest.raises(ValueError, match="is not the id of a run"):
            of(changed)
