"""Runs the tests of keystoneauth1 and of requests over our session, beside plain requests.

    python -m conformance FOLDER

`FOLDER` is for the sources of both, at the versions that are installed. Exits with 1 where a test
fails over our session alone, and is not in `DIFFERENT`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

#: Suites: the project, and what of its tests is run.
SUITES = {
    "keystoneauth1": ["keystoneauth1/tests/unit"],
    "requests": [
        "tests/test_requests.py",
        "tests/test_lowlevel.py",
        "tests/test_adapters.py",
        "tests/test_hooks.py",
    ],
}

#: Tests that pass with plain requests only, and why; the same list is in ADR 21.
DIFFERENT = {
    # a status of four digits, which no connection can carry
    "SessionTests::test_api_sig_error_message_empty",
    "SessionTests::test_api_sig_error_message_multiple",
    "SessionTests::test_api_sig_error_message_single",
    "SessionTests::test_error_message_unknown_schema",
    # a mocked answer without the Content-Length that a real one has
    "SessionAuthTests::test_split_loggers",
    # pools of urllib3, which the short way does not use
    "TestPreparingURLs::test_different_connection_pool_for_tls_settings_verify_True",
    "TestPreparingURLs::test_different_connection_pool_for_tls_settings_verify_bundle_expired_cert",
    "TestPreparingURLs::"
    "test_different_connection_pool_for_tls_settings_verify_bundle_unexpired_cert",
    # a method of the adapter that the test replaces, which the short way does not use
    "TestRequests::test_redirect_with_wrong_gzipped_header",
    # the text of an error
    "TestTimeout::test_stream_timeout",
    # a head that is cut short
    "test_lowlevel.py::test_chunked_encoding_error",
    # requests follows redirects itself, over a connection of its own
    "test_lowlevel.py::test_fragment_update_on_redirect",
    "test_lowlevel.py::test_redirect_rfc1808_to_non_ascii_location",
}


def sources(project: str, folder: Path) -> Path:
    """The unpacked sources of an installed project."""
    name = f"{project}-{version(project)}"
    found = folder / name
    if not found.exists():
        command = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        wanted = f"{project}=={version(project)}"
        subprocess.run([sys.executable, "-m", *command, "-d", folder, wanted], check=True)
        with tarfile.open(folder / f"{name}.tar.gz") as packed:
            packed.extractall(folder, filter="data")
    return found


def failures(project: str, folder: Path, under: str) -> set[str]:
    """The ids of the tests that fail."""
    home = sources(project, folder)
    tests = Path(__file__).parents[1]
    paths = [str(home), str(tests), str(tests.parent / "src")]
    options = ["-q", "-W", "ignore", "--timeout", "60", "-p", "no:cacheprovider", "--tb", "no"]
    command = [sys.executable, "-m", "pytest", "-p", "conformance.session_under_test", *options]
    done = subprocess.run(
        [*command, *SUITES[project]],
        cwd=home,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SESSION_UNDER_TEST": under},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    print(f"{project} over {under or 'requests as it is'}:", *lines[-1:])
    print(*(line for line in lines if line.startswith("requests: ")), sep="\n")
    if done.returncode not in (0, 1):
        sys.exit(done.stdout)
    found = [line.split(" ")[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return set(found)


def main(folder: Path) -> int:
    """Run all suites twice; 1 where something fails that should not."""
    folder.mkdir(parents=True, exist_ok=True)
    code = 0
    for project in SUITES:
        plain = failures(project, folder, "")
        alone = sorted(failures(project, folder, project) - plain)
        for name in alone:
            known = any(name.endswith(one) for one in DIFFERENT)
            print("  known:" if known else "  NEW:", name)
            code |= not known
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
