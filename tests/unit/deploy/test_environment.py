"""What `make setup` has uv do in pip's place."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from helpers.readme import REPOSITORY

SCRIPT = REPOSITORY / ".ci" / "environment.py"


@pytest.fixture(scope="module")
def setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("environment", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(tmp_path: Path, conf: str, **variables: str) -> str:
    """What pip prints of a configuration file and of variables."""
    file = tmp_path / "pip.conf"
    file.write_text(conf)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env={**kept, **variables, "PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_settings_are_read_as_pip_reads_them(setup: ModuleType, tmp_path: Path) -> None:
    conf = (
        "[global]\nindex-url = https://one.example/simple\ntimeout = 10\n"
        "extra-index-url =\n  https://two.example/simple\n  https://three.example/simple\n"
        "[install]\ntimeout = 20\n[download]\nno-deps = true\n"
    )

    found = setup.settings_of(listed(tmp_path, conf, PIP_INDEX_URL="https://four.example/simple"))

    assert found["index-url"] == "https://four.example/simple"
    assert found["timeout"] == "20"
    assert found["extra-index-url"].split() == [
        "https://two.example/simple",
        "https://three.example/simple",
    ]
    assert "no-deps" not in found


def test_uv_gets_the_indexes_of_pip(setup: ModuleType, tmp_path: Path) -> None:
    index = tmp_path / "simple"
    index.mkdir()
    settings = {
        "index-url": "https://user:word@one.example/simple",
        "extra-index-url": f"{index.as_uri()}\nhttps://two.example/simple file:///not/there",
        "find-links": f"{tmp_path} /not/there/either https://three.example/wheels",
        "no-index": "false",
        "cert": "/a/bundle.pem",
        "timeout": "15.0",
        "disable-pip-version-check": "1",
    }

    made = setup.environment_for_uv(settings, {"PATH": "/bin"})

    assert made == {
        "PATH": "/bin",
        "UV_DEFAULT_INDEX": "https://user:word@one.example/simple",
        "UV_INDEX": f"{index.as_uri()} https://two.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{tmp_path},https://three.example/wheels",
        "UV_NO_INDEX": "false",
        "SSL_CERT_FILE": "/a/bundle.pem",
        "UV_HTTP_TIMEOUT": "15",
    }


def test_without_a_certificate_uv_trusts_what_the_system_trusts(setup: ModuleType) -> None:
    assert setup.environment_for_uv({}, {}) == {"UV_SYSTEM_CERTS": "true"}


def test_what_is_set_for_uv_itself_wins(setup: ModuleType) -> None:
    made = setup.environment_for_uv(
        {"index-url": "https://one.example"}, {"UV_DEFAULT_INDEX": "https://two.example"}
    )

    assert made["UV_DEFAULT_INDEX"] == "https://two.example"


def test_a_setting_that_uv_does_not_know_is_told(setup: ModuleType) -> None:
    settings = {"no-binary": ":all:", "index-url": "https://one.example", "quiet": "1"}

    assert setup.unknown_to_uv(settings) == ["no-binary"]


def wheel(folder: Path) -> None:
    """A package that no index has."""
    folder.mkdir()
    name = "osbench_thing-1.0"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as file:
        file.writestr("osbench_thing.py", "")
        file.writestr(
            f"{name}.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: osbench-thing\nVersion: 1.0\n",
        )
        file.writestr(
            f"{name}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr(
            f"{name}.dist-info/RECORD",
            f"osbench_thing.py,,\n{name}.dist-info/METADATA,,\n{name}.dist-info/WHEEL,,\n"
            f"{name}.dist-info/RECORD,,\n",
        )


@pytest.mark.dear
def test_pip_installs_where_uv_cannot_be_had(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels")
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}

    done = subprocess.run(
        [sys.executable, SCRIPT, "made", "osbench-thing"],
        cwd=tmp_path,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )

    lines = done.stdout.splitlines()
    assert lines[0].startswith("making the environment made with Python 3.")
    assert lines[2] == (
        "uv cannot be had from the index that pip uses: installing osbench-thing with pip, which "
        "takes a minute or two"
    )
    assert lines[3].startswith("made is ready after ")
    installed = tmp_path / "made" / "bin" / "python"
    subprocess.run([installed, "-c", "import osbench_thing"], check=True, cwd=tmp_path)
    subprocess.run([installed.with_name("pip"), "--version"], check=True, cwd=tmp_path)


def test_what_cannot_be_installed_ends_with_pips_own_words(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--bare", "made", "osbench-thing"],
        cwd=tmp_path,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "No matching distribution found for osbench-thing" in done.stderr
    assert "is ready" not in done.stdout


def test_uv_installs_from_where_pip_would(setup: ModuleType, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("there is no uv here: `make setup` brings it")
    wheel(tmp_path / "wheels")
    python = tmp_path / "made" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "made"], check=True)
    settings = {"no-index": "1", "find-links": str(tmp_path / "wheels")}

    subprocess.run(
        [uv, "pip", "install", "--python", python, "osbench-thing"],
        env=setup.environment_for_uv(settings, os.environ),
        check=True,
    )

    subprocess.run([python, "-c", "import osbench_thing"], check=True, cwd=tmp_path)


def test_make_setup_ends_by_saying_what_to_do_next() -> None:
    done = subprocess.run(
        # make prints folders where make has called it, as in `make test`
        ["make", "--no-print-directory", "--dry-run", "setup"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    *_, next_, activate = done.stdout.splitlines()
    assert "next: make demo shows a run, make test runs tests for 8 minutes" in next_
    assert "/bin/activate puts osbench-coord and osbench-worker on your PATH" in activate


def test_what_make_starts_keeps_the_modules_that_it_compiles() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--eval", "show: ; @env", "show"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "PATH=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout
