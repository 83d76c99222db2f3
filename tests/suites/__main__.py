"""`python -m suites test`: runs a suite, and a second time the few tests that failed.

A test that fails by chance must not refuse a change, and is not hidden either: it is printed as
`flaky: NAME` in the last lines and in build/flaky.txt. CONTRIBUTING.md has the rule.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from suites.failures import ENDED, OPTION
from suites.parts import LEFT_OUT, REPOSITORY, Part, parts

#: Most causes of failures that are tried a second time, as `suites.failures` counts them; if there
#: are more, the change is broken or the machine is.
SECOND_TRIES = 5
#: A process whose test is still running after so long, seconds, prints its stacks and is ended; its
#: test has failed. pytest-timeout cannot end a test that waits in C with the interpreter's lock.
HUNG_S = 1000
#: Exit code of pytest if tests have failed, and nothing else went wrong.
TESTS_FAILED = 1

FLAKY = REPOSITORY / "build" / "flaky.txt"


def run_part(
    part: Part, options: Sequence[str], folder: Path = REPOSITORY
) -> tuple[int, dict[str, str]]:
    """Run pytest; return its exit code, and the tests that failed with their causes."""
    with tempfile.TemporaryDirectory() as temporary:
        failures = Path(temporary) / "failures"
        command = [sys.executable, "-m", "pytest", "-p", "suites.failures", OPTION, str(failures)]
        command += [
            "-o",
            f"faulthandler_timeout={HUNG_S}",
            "-o",
            "faulthandler_exit_on_timeout=true",
        ]
        tests = str(Path(__file__).resolve().parents[1])
        variables = {"PYTHONPATH": tests, **part.variables}
        code = subprocess.run(
            [*command, *options, *part.options, *part.selection],
            cwd=folder,
            env={**os.environ, **variables},
            check=False,
        ).returncode
        lines = failures.read_text("utf-8").splitlines() if failures.exists() else []
    pairs = (line.partition("\t") for line in lines)
    return code, {name: cause for cause, _, name in pairs}


def try_again(part: Part, names: Sequence[str], folder: Path = REPOSITORY) -> bool:
    """Run failed tests of a part once more, one after the other; return whether all passed."""
    return run_part(replace(part, selection=names), (), folder)[0] == 0


def run_parts(
    suite: Sequence[Part], options: Sequence[str], folder: Path = REPOSITORY
) -> tuple[int, list[str]]:
    """Run all parts; return the exit code and the names of flaky tests.

    Flaky tests failed, and passed when tried alone. The exit code is 1 if more than `SECOND_TRIES`
    tests failed, one failed twice, or pytest or a process of it failed. Tests that failed for want
    of the same fixture count as one.
    """
    failed: list[tuple[Part, list[str]]] = []
    causes: set[str] = set()
    broken = False
    for part in suite:
        print(f"\n== {part.title}", flush=True)
        begun = time.monotonic()
        code, failures = run_part(part, options, folder)
        print(f"== {part.title}: {time.monotonic() - begun:.0f} s", flush=True)
        broken = broken or code not in (0, TESTS_FAILED) or (code == TESTS_FAILED and not failures)
        broken = broken or ENDED in failures.values()
        causes.update(failures.values())
        if failures:
            failed.append((part, list(failures)))
    flaky = [name for _, names in failed for name in names]
    if broken or len(causes) > SECOND_TRIES:
        return 1, []
    for part, names in failed:
        print(f"\n== {part.title}: {len(names)} failed and run once more, alone", flush=True)
        if not try_again(part, names, folder):
            return 1, []
    return 0, flaky


def report(suite: str, flaky: Sequence[str], file: Path = FLAKY) -> None:
    """Print what the suite has left out, then the flaky tests, and write these to a file."""
    print(f"\n{LEFT_OUT[suite]}")
    if flaky:
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as known:
            known.writelines(f"{name}\n" for name in flaky)
    for name in flaky:
        print(f"flaky: {name}", flush=True)


def main() -> int:
    """Run the suite that is asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=sorted(LEFT_OUT))
    parser.add_argument("--jobs", default="auto", help="tests at the same time")
    parser.add_argument("--costs", metavar="CSV", help="append what each test took to a file")
    arguments = parser.parse_args()
    # a process started after one that hung would hang in the same test
    options = ["--numprocesses", arguments.jobs, "--max-worker-restart=0", "--no-loadscope-reorder"]
    if arguments.costs:
        options.append(f"--costs={arguments.costs}")
    code, flaky = run_parts(parts(arguments.suite), options)
    report(arguments.suite, flaky)
    return code


if __name__ == "__main__":
    sys.exit(main())
