"""The commands `certify` and `verify`: files, messages, exit codes, and foreign text."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from helpers.certified_runs import RUN, PlannedRun, certified_run
from osbench.common.ports import disk
from osbench.coordinator.front.cli.group import Group
from osbench.edges.certificate.certify_command import certify
from osbench.edges.certificate.passphrase import VARIABLE
from osbench.edges.certificate.verify_command import verify_certificate
from osbench.edges.history.archives.run_archive import RunArchive

HOSTILE = "Shop <script>alert(1)</script> \x1b[2J\u202e [click](http://x) | `x`"


class Desk:
    """A folder with a data directory and a key, in which commands are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._conf = folder / "osbench.conf"
        self._conf.write_text(f"[DEFAULT]\ndata_dir = {folder / 'data'}\n")
        self.key = folder / "team.key"

    def type(self, *arguments: str, variables: dict[str, str] | None = None) -> Result:
        """Type a command."""
        group = Group(commands=[certify, verify_certificate])
        given = [*arguments, "--config-file", str(self._conf)]
        return CliRunner(env=variables or {}).invoke(group, given)

    def certify(self, *arguments: str) -> Result:
        """Certify with the key of the desk, into the file of the desk."""
        return self.type("certify", "--key", str(self.key), "--output", str(self.file), *arguments)

    def verify(self, *arguments: str) -> Result:
        """Verify that file with the public key of the desk."""
        return self.type("verify", str(self.file), "--public-key", f"{self.key}.pub", *arguments)

    @property
    def file(self) -> Path:
        """The certificate."""
        return self.folder / "shop.certificate.json"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk with a key."""
    monkeypatch.chdir(tmp_path)
    found = Desk(tmp_path)
    assert found.type("certify", "--new-key", str(found.key)).exit_code == 0
    yield found


def test_a_run_is_certified_and_a_third_party_verifies_it(desk: Desk, tmp_path: Path) -> None:
    directory = certified_run(tmp_path / "data")

    sealing = desk.certify("last")
    # the third party has no data directory
    moved = tmp_path / "elsewhere"
    shutil.move(directory.path, moved)
    found = desk.verify("--run", str(moved))

    assert sealing.exit_code == 0, sealing.output
    assert "59 iterations, 2 of them failed, none lost." in sealing.output
    assert found.exit_code == 0, found.output
    assert f"Verified: run {RUN}, Shop" in found.output
    assert "all 6 are there, unchanged, and none was added" in found.output
    assert "give each sealed count, time, interval, verdict and capacity" in found.output
    assert "That the sealer is honest" in found.output
    assert not [one.name for one in tmp_path.iterdir() if "tmp" in one.name]


def test_without_key_and_files_the_output_says_that_these_are_unproved_facts(
    desk: Desk, tmp_path: Path
) -> None:
    certified_run(tmp_path / "data")
    desk.certify(RUN)

    found = desk.type("verify", str(desk.file), "--json")

    document = json.loads(found.stdout)
    assert (document["verified"], document["is_known_key"], document["has_files"]) == (
        True,
        False,
        False,
    )
    assert any("Who holds the key" in one for one in document["not_proved"])
    assert any("Give the files by --run" in one for one in document["not_proved"])


def test_a_refusal_has_exit_code_1_and_json(desk: Desk, tmp_path: Path) -> None:
    directory = certified_run(tmp_path / "data")
    desk.certify("last")
    with (directory.path / "blocks").open("ab") as file:
        file.write(b"x")

    found = desk.verify("--run", RUN)
    as_json = desk.verify("--run", RUN, "--json")
    again = desk.certify("last")

    assert (found.exit_code, as_json.exit_code, again.exit_code) == (1, 1, 1)
    assert "blocks was changed: it has" in found.output
    assert "blocks was changed" in json.dumps(json.loads(as_json.stdout))
    assert "restore the files from a copy" in again.output


def test_a_packed_run_and_an_archive_are_verified(desk: Desk, tmp_path: Path) -> None:
    directory = certified_run(tmp_path / "data")
    archive = RunArchive(str(tmp_path / "team"), str(tmp_path / "data"), lambda _: None)
    archive.push(directory)
    (packed,) = (tmp_path / "team" / "runs").iterdir()
    sealing = desk.certify(RUN, "--archive", str(tmp_path / "team"))
    shutil.rmtree(tmp_path / "data")
    other = tmp_path / "x.tar.zst"
    other.write_bytes(packed.read_bytes()[:-40])

    by_file = desk.verify("--run", str(packed))
    by_archive = desk.verify("--archive", str(tmp_path / "team"))
    cut = desk.verify("--run", str(other))

    assert sealing.exit_code == 0, sealing.output
    assert by_file.exit_code == 0, by_file.output
    assert by_archive.exit_code == 0, by_archive.output
    assert cut.exit_code == 1, cut.output
    assert not (tmp_path / "data").exists()


def test_a_packed_run_of_another_certificate_is_refused(desk: Desk, tmp_path: Path) -> None:
    certified_run(tmp_path / "data")
    other = certified_run(tmp_path / "other", PlannedRun(run="20260402-120000-cd34ef"))
    archive = RunArchive(str(tmp_path / "team"), str(tmp_path / "other"), lambda _: None)
    archive.push(other)
    (packed,) = (tmp_path / "team" / "runs").iterdir()
    desk.certify(RUN)

    found = desk.verify("--run", str(packed))

    assert found.exit_code == 1
    assert f"the run is {RUN}" in found.output


def test_foreign_text_steers_neither_terminal_nor_page_nor_markdown(
    desk: Desk, tmp_path: Path
) -> None:
    certified_run(tmp_path / "data", PlannedRun(title=HOSTILE))
    page, markdown = tmp_path / "c.html", tmp_path / "c.md"

    done = desk.certify("last", "--html", str(page), "--markdown", str(markdown))
    found = desk.verify("--html", str(tmp_path / "v.html"))

    assert (done.exit_code, found.exit_code) == (0, 0), done.output + found.output
    for text in (done.output, found.output, page.read_text("utf-8"), markdown.read_text("utf-8")):
        assert "\x1b" not in text
        assert "\u202e" not in text
    shown = page.read_text("utf-8")
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "http-equiv" in shown


def test_the_page_shows_ledger_criteria_times_and_digests(desk: Desk, tmp_path: Path) -> None:
    directory = certified_run(tmp_path / "data")
    page = tmp_path / "c.html"

    desk.certify("last", "--html", str(page))

    text = page.read_text("utf-8")
    for part in ("57", "failure_rate", "judged again", "node1", "Who holds the key"):
        assert part in text
    listed = json.loads((directory.path / "digests.json").read_text("utf-8"))
    assert listed["files"]["journal"][0]["sha256"] in text
    assert "and not a proof" in text


def test_the_task_file_of_the_run_is_sealed_and_another_is_refused(
    desk: Desk, tmp_path: Path
) -> None:
    certified_run(tmp_path / "data")
    task = {
        "version": 2,
        "title": "Shop",
        "subtasks": [
            {
                "title": "Visitors",
                "scenario": {"Dummy.dummy": {}},
                "runner": {"constant": {"times": 59, "concurrency": 2}},
                "sla": {"failure_rate": {"max": 5}, "percentile": {"p": 95, "max_s": 5}},
            }
        ],
    }
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(task))

    sealing = desk.certify("last", "--task", str(path))
    found = desk.verify("--task", str(path))
    task["subtasks"][0]["runner"]["constant"]["times"] = 60  # type: ignore[index]
    path.write_text(json.dumps(task))
    other = desk.verify("--task", str(path))
    again = desk.certify("last", "--task", str(path))

    assert sealing.exit_code == 0, sealing.output
    assert "The task file has the sealed digest." in found.output
    assert (other.exit_code, again.exit_code) == (1, 1)
    assert "the task file is not the sealed one" in other.output
    assert "is not the task of run" in again.output
    assert "constant.times: the run has 59, the file 60" in again.output


def test_a_passphrase_comes_from_the_environment_and_appears_nowhere(
    desk: Desk, tmp_path: Path
) -> None:
    certified_run(tmp_path / "data")
    locked, secret = tmp_path / "locked.key", "correct horse battery"
    variables = {VARIABLE: secret}

    made = desk.type("certify", "--new-key", str(locked), variables=variables)
    without = desk.type("certify", "last", "--key", str(locked))
    wrong = desk.type("certify", "last", "--key", str(locked), variables={VARIABLE: "x"})
    done = desk.type("certify", "last", "--key", str(locked), variables=variables)

    assert (made.exit_code, without.exit_code, wrong.exit_code, done.exit_code) == (0, 2, 2, 0)
    assert f"set {VARIABLE}" in without.output
    for result in (made, without, wrong, done):
        assert secret not in result.output
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


def test_outputs_never_overwrite_key_certificate_or_each_other(desk: Desk, tmp_path: Path) -> None:
    certified_run(tmp_path / "data")
    secret = desk.key.read_bytes()

    found = [
        desk.certify("last", "--output", str(desk.key)),
        desk.certify("last", "--html", f"{desk.key}.pub"),
        desk.certify("last", "--html", str(tmp_path / "." / desk.file.name)),
        desk.certify("last", "--html", "x", "--markdown", "x"),
    ]
    assert desk.certify("last").exit_code == 0
    content = desk.file.read_bytes()
    found.append(desk.verify("--html", str(desk.file)))

    assert [one.exit_code for one in found] == [2] * 5
    assert all("would be overwritten" in one.output for one in found)
    assert (desk.key.read_bytes(), desk.file.read_bytes()) == (secret, content)


USAGE = {
    "nothing": (["certify"], "a run to seal is missing"),
    "both": (["certify", "last", "--new-key", "x"], "--new-key"),
    "no run": (["certify", "20990101"], "no run '20990101'"),
    "a folder": (["certify", "./nowhere/x"], "is not the folder of a run"),
    "a public key": (["certify", "--new-key", "x.pub"], "ends as public keys do"),
    "no certificate": (["verify", "none.json"], "cannot read the certificate none.json"),
    "a folder as certificate": (["verify", "."], "cannot read the certificate"),
    "two sources": (["verify", "x", "--run", "a", "--archive", "b"], "cannot be combined"),
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_usage_has_exit_code_2_and_a_message(desk: Desk, tmp_path: Path, case: str) -> None:
    certified_run(tmp_path / "data")
    arguments, said = USAGE[case]
    key = (
        ["--key", str(desk.key)]
        if arguments[0] == "certify" and "--new-key" not in arguments
        else []
    )

    found = desk.type(*arguments, *key)

    assert found.exit_code == 2, found.output
    assert said in found.output


def test_a_certificate_that_cannot_be_written_is_an_error_with_a_remedy(
    desk: Desk, tmp_path: Path
) -> None:
    certified_run(tmp_path / "data")

    found = desk.certify("last", "--output", str(tmp_path / "no" / "x.json"))

    assert found.exit_code == 2
    assert "cannot write" in found.output


def test_a_full_disk_leaves_the_certificate_of_before(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certified_run(tmp_path / "data")
    desk.file.write_text("of before")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(disk, "fsync", full)
        found = desk.certify("last")

    assert found.exit_code == 2
    assert f"cannot write {desk.file}: no space left on device" in found.output
    assert desk.file.read_text() == "of before"
    assert not list(tmp_path.glob(".*"))


def test_a_certificate_is_for_others_to_read_and_an_existing_file_keeps_its_mode(
    desk: Desk, tmp_path: Path
) -> None:
    certified_run(tmp_path / "data")
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("")
    page.chmod(0o640)
    link.symlink_to(page)
    before = os.umask(0o022)
    try:
        assert desk.certify("last", "--html", str(link)).exit_code == 0
        assert desk.certify("last", "--markdown", "/dev/null").exit_code == 0
    finally:
        os.umask(before)

    assert desk.file.stat().st_mode & 0o777 == 0o644
    assert page.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert "<html" in page.read_text()
