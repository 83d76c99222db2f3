"""A user without an entry in passwd and without HOME, as containers have: one line, exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.commands import environment

#: Runs a command as such a user.
COMMAND = """\
import os, pwd, sys

def absent(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")

pwd.getpwuid = absent
os.environ.pop("HOME", None)
sys.argv[0] = "osbench"
from osbench.%s.main import main
sys.exit(main())
"""


def run(package: str, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND % package, *words],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("coordinator", ["run", "--scenario", "Dummy.dummy", "--times", "1"]),
        ("worker", []),
    ],
)
def test_it_is_told_what_to_set(tmp_path, package, words):
    done = run(package, *words, home=tmp_path)

    assert done.returncode == 2
    assert "[DEFAULT] data_dir: ~/.osbench: this user has no home directory: set HOME" in (
        done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("package", ["coordinator", "worker"])
def test_help_needs_no_home(tmp_path, package):
    assert run(package, "--help", home=tmp_path).returncode == 0


def test_with_a_data_directory_commands_run_and_unknown_homes_are_told(tmp_path):
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}/data\n")

    done = run("coordinator", "runs", "list", "--config-file", str(conf), home=tmp_path)
    lost = run(
        "coordinator",
        "validate",
        "~nobody-here/task.yaml",
        "--config-file",
        str(conf),
        home=tmp_path,
    )

    assert done.returncode == 0, done.stderr
    assert lost.returncode == 2
    assert "~nobody-here/task.yaml" in lost.stdout
    assert "cannot be read: No such file or directory" in lost.stdout
